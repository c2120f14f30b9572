//! What the guide says where no article is asked for: to greetings, thanks and farewells, and to what it does not know.

use crate::Language;
use crate::words::fold;

/// A short, kind answer to small talk.
pub fn reply(language: Language, message: &str) -> &'static str {
    let texts = texts(language);
    let folded = fold(message);
    let has = |cues: &[&str]| cues.iter().any(|cue| folded.contains(&fold(cue)));
    if has(texts.thanks_cues) {
        texts.thanks
    } else if has(texts.farewell_cues) {
        texts.farewell
    } else {
        texts.greeting
    }
}

/// Says what the guide is for.
pub fn decline(language: Language) -> &'static str {
    texts(language).decline
}

/// The same, with an offer of a model and the size of its download in bytes.
pub fn decline_with_offer(language: Language, model: &str, bytes: u64) -> String {
    let size = format!("{:.1} GB", bytes as f64 / 1e9);
    let size = if language == Language::German { size.replace('.', ",") } else { size };
    texts(language).offer.replace("{model}", model).replace("{size}", &size)
}

struct SmallTalkTexts {
    thanks_cues: &'static [&'static str],
    farewell_cues: &'static [&'static str],
    thanks: &'static str,
    farewell: &'static str,
    greeting: &'static str,
    decline: &'static str,
    offer: &'static str,
}

fn texts(language: Language) -> &'static SmallTalkTexts {
    match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
        Language::Japanese => &JAPANESE,
        Language::Arabic => &ARABIC,
    }
}

const ENGLISH: SmallTalkTexts = SmallTalkTexts {
    thanks_cues: &["thank", "thx", "cheers", "appreciated", "helped", "helpful"],
    farewell_cues: &[
        "bye",
        "see you",
        "good night",
        "take care",
        "nice day",
        "next time",
        "have to go",
        "sleep well",
    ],
    thanks: "You're welcome! Ask me anything else about Inglenook.",
    farewell: "Goodbye! Your chats are saved on this computer.",
    greeting: "Hello! I'm the guide to Inglenook. Ask me how to do something in this app.",
    decline: "I only know this app, so I can't answer that; a downloaded model can.",
    offer: "I only know this app, so I can't answer that; {model}, which is recommended for this computer (download: {size}), can.",
};

const GERMAN: SmallTalkTexts = SmallTalkTexts {
    thanks_cues: &["dank", "merci", "geholfen"],
    farewell_cues: &[
        "tschüss",
        "wiedersehen",
        "bis morgen",
        "bis später",
        "gute nacht",
        "ciao",
        "bye",
        "feierabend",
        "schönes wochenende",
    ],
    thanks: "Gern geschehen! Frag mich, wenn du noch etwas über Inglenook wissen möchtest.",
    farewell: "Bis bald! Deine Chats sind auf diesem Computer gespeichert.",
    greeting: "Hallo! Ich bin der Ratgeber zu Inglenook. Frag mich, wie etwas in dieser App geht.",
    decline: "Ich kenne nur diese App und kann das nicht beantworten; ein heruntergeladenes Modell kann es.",
    offer: "Ich kenne nur diese App und kann das nicht beantworten; {model}, das für diesen Computer empfohlene Modell (Download: {size}), kann es.",
};

const JAPANESE: SmallTalkTexts = SmallTalkTexts {
    thanks_cues: &["ありがとう", "サンキュー", "感謝", "助かり", "おかげ"],
    farewell_cues: &["さようなら", "バイバイ", "またね", "また明日", "じゃあね", "おやすみ", "週末を"],
    thanks: "どういたしまして。Inglenook についてほかにも知りたいことがあれば、聞いてください。",
    farewell: "またいつでもどうぞ。チャットはこのコンピューターに保存されています。",
    greeting: "こんにちは。Inglenook の案内役です。このアプリの使い方を聞いてください。",
    decline: "このアプリのことしか分からないため、お答えできません。ダウンロードしたモデルなら答えられます。",
    offer: "このアプリのことしか分からないため、お答えできません。このコンピューターにおすすめの {model}（ダウンロード: {size}）なら答えられます。",
};

const ARABIC: SmallTalkTexts = SmallTalkTexts {
    thanks_cues: &["شكر", "مشكور", "تسلم", "ميرسي", "العافية"],
    farewell_cues: &["السلامة", "باي", "اللقاء", "تصبح على خير", "وداعا"],
    thanks: "على الرحب والسعة! اسألني عن أي شيء آخر في Inglenook.",
    farewell: "إلى اللقاء! دردشاتك محفوظة على هذا الحاسوب.",
    greeting: "مرحبًا! أنا دليل Inglenook. اسألني كيف تفعل شيئًا في هذا التطبيق.",
    decline: "لا أعرف إلا هذا التطبيق، ولذلك لا أستطيع الإجابة عن هذا؛ يستطيع ذلك نموذج تنزّله.",
    offer: "لا أعرف إلا هذا التطبيق، ولذلك لا أستطيع الإجابة عن هذا؛ يستطيع ذلك {model} الموصى به لهذا الحاسوب (التنزيل: {size}).",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thanks_and_farewells_are_answered_as_such() {
        for (language, message, expected) in [
            (Language::English, "Thanks a lot!", ENGLISH.thanks),
            (Language::English, "Hi", ENGLISH.greeting),
            (Language::German, "Gute Nacht", GERMAN.farewell),
            (Language::Japanese, "ありがとうございます", JAPANESE.thanks),
            (Language::Arabic, "شكرًا جزيلًا", ARABIC.thanks),
        ] {
            assert_eq!(reply(language, message), expected, "{message}");
        }
    }

    #[test]
    fn an_offer_names_the_model_and_its_size() {
        let text = decline_with_offer(Language::German, "Qwen3 4B", 2_490_000_000);
        assert!(text.contains("Qwen3 4B") && text.contains("2,5 GB") && !text.contains('{'), "{text}");
    }
}
