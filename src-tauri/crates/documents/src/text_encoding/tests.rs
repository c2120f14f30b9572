//! Texts in many encodings and states of repair. Expected are the texts as they were written.

use encoding_rs::Encoding;

use super::decode;

const RUSSIAN: &str = "Имя,Возраст,Город\nИван,28,Москва\nПётр,35,Санкт-Петербург\nЭто обычный текстовый файл на русском языке.\n";
const UKRAINIAN: &str = "Ім'я,Вік,Місто\nЄвген,28,Київ\nЇжак,35,Львів\nЦе звичайний текст українською мовою, і в ньому є ґанок.\n";
const CHINESE: &str = "姓名,年龄,城市\n张三,28,北京\n李四,35,上海\n备注：以上数据来自二零二四年第三季度的统计报告，仅供内部参考。\n";
const TAIWANESE: &str = "姓名,年齡,城市\n王小明,28,臺北\n陳美麗,35,高雄\n備註：以上資料來自二零二四年第三季的統計報告，僅供內部參考。\n";
const JAPANESE: &str =
    "名前,年齢,都市\n田中,28,東京\n鈴木,35,大阪\nこれは日本語のテキストファイルです。文字化けしません。\n";
const KOREAN: &str =
    "이름,나이,도시\n김철수,28,서울\n박영희,35,부산\n이것은 한국어로 된 평범한 텍스트 파일입니다.\n";
const GREEK: &str =
    "Όνομα,Ηλικία,Πόλη\nΓιώργος,28,Αθήνα\nΑυτό είναι ένα συνηθισμένο αρχείο κειμένου στα ελληνικά.\n";
const HEBREW: &str = "שם,גיל,עיר\nדוד,28,ירושלים\nזהו קובץ טקסט רגיל בעברית, והוא נשמר בקידוד ישן.\n";
const ARABIC: &str =
    "الاسم,العمر,المدينة\nمحمد,28,القاهرة\nهذا ملف نصي عادي باللغة العربية محفوظ بترميز قديم.\n";
const THAI: &str = "ชื่อ,อายุ,เมือง\nสมชาย,28,กรุงเทพ\nนี่คือไฟล์ข้อความธรรมดาในภาษาไทยที่บันทึกด้วยรหัสแบบเก่า\n";
const POLISH: &str = "Imię,Wiek,Miasto\nStanisław,28,Łódź\nTo jest zwykły plik tekstowy w języku polskim. Zażółć gęślą jaźń, proszę państwa.\n";
const CZECH: &str = "Jméno,Věk,Město\nJiří,28,Plzeň\nToto je obyčejný textový soubor v češtině. Příliš žluťoučký kůň úpěl ďábelské ódy.\n";
const TURKISH: &str = "Ad,Yaş,Şehir\nIşıl,28,İstanbul\nBu, Türkçe yazılmış sıradan bir metin dosyasıdır. Çocuklar bahçede güneşin altında oynuyor.\n";
const GERMAN: &str = "Name,Alter,Straße\nJürgen Müller,28,Königsallee\nDies ist eine gewöhnliche Textdatei mit Umlauten: größer, schöner, übermütig. Preis: 5 €\n";
const FRENCH: &str = "Prénom,Âge,Ville\nHélène,28,Nîmes\nCeci est un fichier texte ordinaire, écrit en français : « où êtes-vous ? » – déjà à l’école…\n";

fn encoded(label: &str, text: &str) -> Vec<u8> {
    let encoding = Encoding::for_label(label.as_bytes()).unwrap();
    let (bytes, used, had_unmappable) = encoding.encode(text);
    assert!(used == encoding && !had_unmappable, "{label} lacks a character of the test's text");
    bytes.into_owned()
}

fn check(name: &str, bytes: &[u8], expected: &str, guessed: Option<&str>) {
    let found = decode(name, bytes);
    let found = found.as_ref().map(|it| (it.text.as_str(), it.guessed));
    assert_eq!(found, Some((expected, guessed)), "{name}, {guessed:?}");
}

const LEGACY: [(&str, &str, &str); 24] = [
    ("windows-1251", RUSSIAN, "windows-1251"),
    ("koi8-r", RUSSIAN, "KOI8-R"),
    ("ibm866", RUSSIAN, "IBM866"),
    ("iso-8859-5", RUSSIAN, "ISO-8859-5"),
    ("windows-1251", UKRAINIAN, "windows-1251"),
    ("koi8-u", UKRAINIAN, "KOI8-U"),
    ("gbk", CHINESE, "GBK"),
    ("big5", TAIWANESE, "Big5"),
    ("shift_jis", JAPANESE, "Shift_JIS"),
    ("euc-jp", JAPANESE, "EUC-JP"),
    ("iso-2022-jp", JAPANESE, "ISO-2022-JP"),
    ("euc-kr", KOREAN, "EUC-KR"),
    ("windows-1253", GREEK, "windows-1253"),
    ("iso-8859-7", GREEK, "windows-1253"),
    ("windows-1255", HEBREW, "windows-1255"),
    ("windows-1256", ARABIC, "windows-1256"),
    ("iso-8859-6", ARABIC, "ISO-8859-6"),
    ("windows-874", THAI, "windows-874"),
    ("windows-1250", POLISH, "windows-1250"),
    ("iso-8859-2", POLISH, "ISO-8859-2"),
    ("windows-1250", CZECH, "windows-1250"),
    ("windows-1254", TURKISH, "windows-1254"),
    ("windows-1252", GERMAN, "windows-1252"),
    ("windows-1252", FRENCH, "windows-1252"),
];

#[test]
fn legacy_encodings_are_told_by_their_bytes() {
    for (label, text, guessed) in LEGACY {
        check("a.txt", &encoded(label, text), text, Some(guessed));
    }
}

#[test]
fn one_wrong_byte_hides_no_legacy_encoding() {
    for (label, text, guessed) in [
        ("gbk", CHINESE, "GBK"),
        ("shift_jis", JAPANESE, "Shift_JIS"),
        ("euc-kr", KOREAN, "EUC-KR"),
        ("big5", TAIWANESE, "Big5"),
        ("euc-jp", JAPANESE, "EUC-JP"),
    ] {
        let mut bytes = encoded(label, text);
        bytes.extend(b"\xff\nend\0\n");
        check("a.txt", &bytes, &format!("{text}\u{fffd}\nend\u{fffd}\n"), Some(guessed));
        let cut = &encoded(label, text.trim_end())[..encoded(label, text.trim_end()).len() - 1];
        let found = decode("a.txt", cut).unwrap();
        assert_eq!(found.guessed, Some(guessed), "cut in a character");
    }
}

#[test]
fn short_texts_are_told_too() {
    let cases = [
        ("gbk", "你好，世界\n", "GBK"),
        ("gbk", "订单编号,商品,数量,单价\n1001,苹果,5,3.2\n", "GBK"),
        ("big5", "今天天氣很好，我們去公園散步吧。\n", "Big5"),
        ("shift_jis", "こんにちは\n", "Shift_JIS"),
        ("shift_jis", "商品名,価格\nりんご,120\nバナナ,80\n", "Shift_JIS"),
        ("euc-jp", "こんにちは\n", "EUC-JP"),
        ("euc-kr", "안녕하세요\n", "EUC-KR"),
        ("euc-kr", "뷁 똠방각하 펲시콜라\n", "EUC-KR"),
        ("windows-1251", "Привет, мир!\n", "windows-1251"),
        ("koi8-r", "ОШИБКА: файл не найден\n", "KOI8-R"),
        ("ibm866", " Том в устройстве C не имеет метки.\n", "IBM866"),
        ("windows-1253", "Καλημέρα κόσμε\n", "windows-1253"),
        ("windows-1255", "שלום עולם\n", "windows-1255"),
        ("windows-1256", "مرحبا بالعالم\n", "windows-1256"),
        ("windows-1252", "El niño comió piña en España.\n", "windows-1252"),
        ("windows-1252", "25 °C – “quoted” text’s\n", "windows-1252"),
    ];
    for (label, text, guessed) in cases {
        check("a.txt", &encoded(label, text), text, Some(guessed));
    }
    // Cut in the last character.
    let cut = encoded("gbk", "你好，世界你");
    check("a.txt", &cut[..cut.len() - 1], "你好，世界\u{fffd}", Some("GBK"));
}

#[test]
fn characters_beyond_gbk_are_gb18030() {
    let text = format!("{CHINESE}㐀𠀀\n");
    check("a.txt", &encoded("gb18030", &text), &text, Some("gb18030"));
}

fn wide(text: &str, is_big: bool, n_bytes: usize) -> Vec<u8> {
    let units: Vec<u32> = match n_bytes {
        2 => text.encode_utf16().map(u32::from).collect(),
        _ => text.chars().map(u32::from).collect(),
    };
    let bytes = |unit: &u32| match is_big {
        true => unit.to_be_bytes()[4 - n_bytes..].to_vec(),
        false => unit.to_le_bytes()[..n_bytes].to_vec(),
    };
    units.iter().flat_map(bytes).collect()
}

#[test]
fn unicode_of_two_and_four_bytes_is_read_with_and_without_a_mark() {
    for text in [GERMAN, RUSSIAN, GREEK, HEBREW, ARABIC, THAI, CHINESE, TAIWANESE, JAPANESE, KOREAN] {
        for (is_big, n_bytes, name) in
            [(false, 2, "UTF-16LE"), (true, 2, "UTF-16BE"), (false, 4, "UTF-32LE"), (true, 4, "UTF-32BE")]
        {
            check("a.txt", &wide(text, is_big, n_bytes), text, Some(name));
            check("a.txt", &wide(&format!("\u{feff}{text}"), is_big, n_bytes), text, None);
        }
    }
}

#[test]
fn damaged_utf8_stays_utf8() {
    let log = "line one\nline two\0\nline three\n".repeat(50);
    check("a.log", log.as_bytes(), &log.replace('\0', "\u{fffd}"), Some("UTF-8"));
    let plain = "A line of a log that says nothing else.\n".repeat(9);
    for (middle, shown) in [
        (&b"\xff"[..], "\u{fffd}"),
        (b"\xe2\x80", "\u{fffd}"),
        (b"\xf0\x9f\x98", "\u{fffd}"),
        (b"\x08", "\u{fffd}"),
        (b"\0", "\u{fffd}"),
        (b"\x1a", "\u{fffd}"),
    ] {
        let bytes = [plain.as_bytes(), middle, b" here\n"].concat();
        check("a.log", &bytes, &format!("{plain}{shown} here\n"), Some("UTF-8"));
    }
    for text in [RUSSIAN, CHINESE, JAPANESE, KOREAN, FRENCH, GERMAN] {
        for middle in [&b"\xff"[..], b"\xe9", b"\x80", b"\0", b"\x08", b"\xe5\xa7"] {
            let bytes = [text.as_bytes(), middle, b"\n", text.as_bytes()].concat();
            check("a.txt", &bytes, &format!("{text}\u{fffd}\n{text}"), Some("UTF-8"));
        }
        let cut = text.trim_end().char_indices().rev().find(|(_, c)| !c.is_ascii()).unwrap().0 + 1;
        check("a.txt", &text.as_bytes()[..cut], &format!("{}\u{fffd}", &text[..cut - 1]), Some("UTF-8"));
        let first = text.chars().next().unwrap();
        let cut = "\u{fffd}".repeat(first.len_utf8() - 1) + &text[first.len_utf8()..];
        check("a.txt", &text.as_bytes()[1..], &cut, (!first.is_ascii()).then_some("UTF-8"));
    }
}

#[test]
fn escapes_of_terminals_and_old_ends_of_files_are_text() {
    check("a.log", b"\x1b[31mred\x1b[0m\x0c\n", "\x1b[31mred\x1b[0m\x0c\n", None);
    check("a.txt", b"as under DOS\r\n\x1a", "as under DOS\r\n", None);
    let page = "N\u{8}NA\u{8}AM\u{8}ME\u{8}E\n";
    check("man.txt", page.as_bytes(), &page.replace('\u{8}', "\u{fffd}"), Some("UTF-8"));
}

#[test]
fn declared_encodings_win() {
    let lithuanian = "Ąžuolas, ėriukas, šįmet, ųsai, ūkas, žąsis";
    let cases: [(&str, &str, &str, &str); 14] = [
        ("a.html", "windows-1257", "<html><head><meta charset=\"windows-1257\"></head><p>", "</p>"),
        (
            "a.htm",
            "windows-1257",
            "<META http-equiv=Content-Type content='text/html; charset=Windows-1257'>",
            "",
        ),
        ("page", "windows-1257", "\n<!DOCTYPE html><meta charset=cp1257>", ""),
        ("a.html", "windows-1257", "<!-- <meta charset=koi8-r> --><meta charset=windows-1257>", ""),
        ("a.xml", "windows-1257", "<?xml version=\"1.0\" encoding=\"windows-1257\"?><a>", "</a>"),
        ("a.svg", "iso-8859-13", "<?xml version='1.0' encoding='ISO-8859-13'?><svg>", "</svg>"),
        ("a.py", "windows-1257", "#!/usr/bin/python\n# -*- coding: cp1257 -*-\nx = '", "'\n"),
        ("a.py", "windows-1257", "# vim: set fileencoding=windows1257 :\n", "\n"),
        ("a.rb", "iso-8859-4", "# encoding: ISO-8859-4\n", "\n"),
        ("a.el", "iso-8859-4", ";; -*- mode: lisp; coding: latin4-unix -*-\n", "\n"),
        ("a.css", "windows-1257", "@charset \"windows-1257\";\n/* ", " */"),
        ("a.tex", "windows-1257", "\\documentclass{a}\n\\usepackage[cp1257]{inputenc}\n", "\n"),
        (
            "a.po",
            "windows-1257",
            "msgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=CP1257\\n\"\n# ",
            "\n",
        ),
        ("a.py", "windows-1257", "# coding=CP1257\n# ", "\n"),
    ];
    for (name, label, before, after) in cases {
        let text = format!("{before}{lithuanian}{after}");
        check(name, &encoded(label, &text), &text, None);
    }
    // Of two letters that UTF-8 would take for one.
    check("a.py", b"# coding: latin-1\n# \xc3\xa9\n", "# coding: latin-1\n# Ã©\n", None);
    check("a.html", b"<meta charset=iso-2022-jp>\x1b$B4A;z\x1b(B", "<meta charset=iso-2022-jp>漢字", None);
}

#[test]
fn a_declaration_that_is_evidently_wrong_is_none() {
    let page = format!("<meta charset=gbk>{CHINESE}");
    check("a.html", page.as_bytes(), &page, None);
    let page = format!("<meta charset=utf-16>{RUSSIAN}");
    check("a.html", page.as_bytes(), &page, None);
    let page = format!("<meta charset=utf-8>{RUSSIAN}");
    check("a.html", &encoded("windows-1251", &page), &page, Some("windows-1251"));
    let page = format!("<meta charset=shift_jis>{RUSSIAN}");
    check("a.html", &encoded("windows-1251", &page), &page, Some("windows-1251"));
    let script = format!("# coding: ascii\n# {RUSSIAN}");
    check("a.py", &encoded("koi8-r", &script), &script, Some("KOI8-R"));
    let notes = format!("About `<meta charset=koi8-r>`: {GERMAN}");
    check("a.md", &encoded("windows-1252", &notes), &notes, Some("windows-1252"));
}

#[test]
fn what_is_no_text_is_not_decoded() {
    let noise: Vec<u8> = (0..4000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let zeros = [0; 4000];
    let floats: Vec<u8> = (0..1000_u16).flat_map(|n| (f32::from(n) * 0.37).to_le_bytes()).collect();
    let numbers: Vec<u8> = (0..1000_u32).flat_map(u32::to_le_bytes).collect();
    for bytes in [&noise[..], &zeros, &floats, &numbers, b"text\0with zeros"] {
        assert_eq!(decode("a.txt", bytes), None, "{:?}", &bytes[..8]);
    }
}
