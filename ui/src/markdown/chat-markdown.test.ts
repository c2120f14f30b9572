/** Markdown as models write it, where it differs from GitHub's. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Blocks } from './blocks';
import { setTypeset } from './math';

// Sanitising is tested on its own, and slow without a browser.
vi.mock('./sanitise', () => ({ sanitise: (html: string) => html }));

const html = (text: string) =>
  new Blocks()
    .update(text, false)
    .map((it) => it.html)
    .join('');

/** What stands between these tags. */
const within = (tag: string, text: string) =>
  [...html(text).matchAll(new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`, 'g'))].map((it) => it[1]);

describe('strikethrough', () => {
  it.each<[string, string[]]>([
    ['~5 minutes to ~10 minutes and ~~gone~~; 3~4 and 5~6', ['gone']],
    ['~test test~', []],
    ['(~2000 lines) and (~5000 lines)', []],
    ['大约~12万和~510万', []],
    ['~12万~510万', []],
    ['takes ~3~5 minutes', []],
    ['喵呜~♡这就为您呈上~', []],
    ['see ~/.config and ~/.cache', []],
    ['Eq.~(15) to Eq.~(16)', []],
    ['first (~$1.50) and second (~$10)', []],
    ['| a | b |\n|---|---|\n| ~1 | ~2 ~3~ |', []],
    ['a ~~b~~ c ~d~ e', ['b']],
    ['~~gone **but bold**~~', ['gone <strong>but bold</strong>']],
    ['**~~a~~**', ['a']],
    ['删除~~（这个）~~吧', ['（这个）']],
    ['~~~a~~~ b', []],
    ['~~open', []],
    ['~~ a ~~', []],
    ['`~~a~~`', []],
    ['\\~~a~~', []],
  ])('%s', (text, expected) => {
    expect(within('del', text)).toEqual(expected);
    if (expected.length === 0) expect(html(text)).not.toContain('<del>');
  });

  it('keeps every tilde that strikes nothing', () => {
    expect(html('~a~ ~b ~~c')).toBe('<p>~a~ ~b ~~c</p>\n');
  });
});

describe('bold beside the punctuation of Chinese, Japanese and Korean', () => {
  it.each<[string, string[]]>([
    ['这是**“重点”**内容，**注意：**请看。これは**重要。**次へ', ['“重点”', '注意：', '重要。']],
    [
      '**この文を強調できますか（Can I emphasize this sentence）？**残念ながら',
      ['この文を強調できますか（Can I emphasize this sentence）？'],
    ],
    ['이 용어**(This term)**를 강조', ['(This term)']],
    ['**이 용어(This term)**를 강조해 주세요.', ['이 용어(This term)']],
    ['我可以强调**这个`code`**吗', ['这个<code>code</code>']],
    ['**[链接](https://a.example)**后面', ['链接']],
    ['は**「引用」**です', ['「引用」']],
    ['１．**【重要】**注意', ['【重要】']],
    ['使用**《书名》**这本书', ['《书名》']],
    ['価格は**¥100**です', ['¥100']],
    ['**"quoted"**という', ['&quot;quoted&quot;']],
    ['葛󠄀**(かずら)**です', ['(かずら)']],
    ['**a**b', ['a']],
    ['中**文**中', ['文']],
    ['1. **标题：**内容', ['标题：']],
    ['| a |\n|---|\n| 这是**“重点”**内容 |', ['“重点”']],
    ['**a "b"**c', []],
    ['a**"b"**c', []],
    ['** 不 **', []],
  ])('%s', (text, expected) => {
    expect(
      within('strong', text).map((it) => it?.replace(/<\/?a[^>]*>|<span.*<\/span>/g, '')),
    ).toEqual(expected);
  });

  it('treats underscores and single asterisks likewise', () => {
    expect(within('em', '这是*“重点”*内容')).toEqual(['“重点”']);
    expect(within('em', 'これは_重要。_ 次')).toEqual([]);
    expect(within('em', 'snake_case_name and a_b_')).toEqual([]);
  });

  // Each from the specification of CommonMark 0.31.2, section 6.2.
  it.each<[string, string]>([
    ['***foo** bar*', '<em><strong>foo</strong> bar</em>'],
    ['*foo**bar**baz*', '<em>foo<strong>bar</strong>baz</em>'],
    ['**foo*', '*<em>foo</em>'],
    ['*foo**', '<em>foo</em>*'],
    ['foo***bar***baz', 'foo<em><strong>bar</strong></em>baz'],
    ['foo******bar*********baz', 'foo<strong><strong><strong>bar</strong></strong></strong>***baz'],
    ['*foo **bar *baz* bim** bop*', '<em>foo <strong>bar <em>baz</em> bim</strong> bop</em>'],
    ['foo *\\**', 'foo <em>*</em>'],
    ['*foo _bar* baz_', '<em>foo _bar</em> baz_'],
    ['**a<https://foo.bar/?q=**>', '**a'],
    ['*a `*`*', '<em>a <code>*</code></em>'],
    ['_foo_bar_baz_', '<em>foo_bar_baz</em>'],
    ['a*"foo"*', 'a*&quot;foo&quot;*'],
  ])('keeps the rest of the rules: %s', (text, expected) => {
    expect(html(text).startsWith(`<p>${expected}`)).toBe(true);
  });
});

describe('bare addresses', () => {
  it.each<[string, string[]]>([
    ['访问https://example.com，然后继续', ['https://example.com/']],
    ['https://example.com。', ['https://example.com/']],
    ['https://example.com。然后', ['https://example.com/']],
    ['https://example.com了解更多', ['https://example.com/']],
    ['https://example.com에서 보기', ['https://example.com/']],
    ['見てhttps://example.comを', ['https://example.com/']],
    ['https://example.comครับ', ['https://example.com/']],
    ['https://example.com/docs（中文说明）了解更多', ['https://example.com/docs']],
    ['https://example.com/docs了解更多', ['https://example.com/docs']],
    [
      'https://example.com/guide，详见https://b.example/x。',
      ['https://example.com/guide', 'https://b.example/x'],
    ],
    ['(https://github.com/)。', ['https://github.com/']],
    ['“https://example.com/a”', ['https://example.com/a']],
    ['https://example.com/a…', ['https://example.com/a']],
    ['https://example.com✅', ['https://example.com/']],
    ['https://example.com:8080的', ['https://example.com:8080/']],
    ['https://example.com/a?q=1；b', ['https://example.com/a?q=1']],
    ['https://zh.wikipedia.org/wiki/中文', ['https://zh.wikipedia.org/wiki/%E4%B8%AD%E6%96%87']],
    ['https://example.com/?q=中文', ['https://example.com/?q=%E4%B8%AD%E6%96%87']],
    ['https://example.com/安装包（正式版）', ['https://example.com/%E5%AE%89%E8%A3%85%E5%8C%85']],
    ['https://example.com/café', ['https://example.com/caf%C3%A9']],
    ['https://example.com\u200b.evil.example', ['https://example.com/']],
    ['https://example.com\u202emoc.live', ['https://example.com/']],
    ['https://example.com．evil.example', ['https://example.com/']],
    ['https://example.com／evil', ['https://example.com/']],
    ['https://exampleи.com', []],
    ['www.example.com，然后', ['http://www.example.com/']],
    ['联系a@example.com，谢谢', ['mailto:a@example.com']],
    ['**https://example.com/a**。做', ['https://example.com/a']],
    [
      'https://example.com/a_b_c and https://example.com/(x).',
      ['https://example.com/a_b_c', 'https://example.com/(x)'],
    ],
  ])('%s', (text, expected) => {
    expect([...html(text).matchAll(/data-url="([^"]*)"/g)].map((it) => it[1])).toEqual(expected);
    expect(html(text)).not.toContain('md-host');
  });

  it('may have a host of another script, which is named as it is asked for', () => {
    const text = html('https://www.例え.jp/x');
    expect(text).toContain('data-url="https://www.xn--r8jz45g.jp/x"');
    expect(text).toContain(' (www.xn--r8jz45g.jp)');
  });

  it('names the host where the text names another one', () => {
    for (const text of [
      '[https://evil.example.good.example](https://evil.example)',
      '[good.example/evil.example](https://evil.example)',
      'https://good.example@evil.example/',
      '[not-evil.example](https://evil.example)',
    ])
      expect(html(text)).toContain('<span class="md-host"> (evil.example)</span>');
  });
});

describe('formulas', () => {
  beforeAll(() => setTypeset((tex, display) => (display ? `⟦${tex}⟧` : `⟨${tex}⟩`)));
  afterAll(() => setTypeset(() => null));

  const texts = (text: string) =>
    [...html(text).matchAll(/⟦([^]*?)⟧|⟨([^]*?)⟩/g)].map((it) => it[1] ?? it[2]);

  it.each<[string, string[]]>([
    // blank lines
    ['\\[\na = b\n\nc = d\n\\]\nand then text *ok*', ['a = b\n\nc = d']],
    ['$$\na\n\n+ b\n$$', ['a\n\n+ b']],
    ['$$\n\na\n\n$$\n\nend', ['a']],
    ['Hence:\n$$\na\n\nb\n$$\nend', ['a\n\nb']],
    ['where: \\[\na\n\nb\n\\] and so on', ['a\n\nb']],
    ['so $$\na\n\nb\n$$.', ['a\n\nb']],
    ['\\[ a\n\nb \\]', ['a\n\nb']],
    ['- item\n\n  \\[\n  a\n\n  b\n  \\]\n- next', ['a\n\nb']],
    ['> \\[\n> a\n>\n> b\n> \\]', ['a\n\nb']],
    ['\\begin{x}', []],
    ['$$ is no formula\n\n- a\n\nend $$', []],
    ['\\[ open\n\nthe end', []],
    ['$$\n\n# Heading\n\n$$', []],
    ['\\[\n```\nx\n```\n\\]', []],
    // before and behind letters
    ['the $n$th of $k$-means, $2^n$s, $x_i$s', ['n', 'k', '2^n', 'x_i']],
    ['设$x$为$\\alpha$的值', ['x', '\\alpha']],
    ['2$\\pi$ and a$^2$', ['\\pi', '^2']],
    ['\\(x\\)th \\(y\\)z', ['x', 'y']],
    ['($\\alpha$) [$a_1$]; $b$, "$c$"', ['\\alpha', 'a_1', 'b', 'c']],
    ['over $W_F^\\dagger T\nW_F$ lines', ['W_F^\\dagger T\nW_F']],
    ['$ \\epsilon = \\frac{y}{r} $', ['\\epsilon = \\frac{y}{r}']],
    // prices, variables, prose
    ['$5-$10, $10K flat at $8K, US$5 to US$6', []],
    ['I have $24000 and you have $40000', []],
    ['**$1.50** … **$800** and (~$10)', []],
    ['$10 and 20$.', []],
    ['$HOME/$USER and ${A}/$B', []],
    ['a=$b; c=$d', []],
    ['<$5 and >$x', []],
    ['$/PR is down but $/session is up', []],
    ['$5\n- $x', []],
    ['$12.5/月', []],
    // emphasis around and within
    ['*see $a*b$*', ['a*b']],
    ['**$a_1$ and $b_2$**', ['a_1', 'b_2']],
    ['$a*b$ and $c*d$', ['a*b', 'c*d']],
    // tables
    ['| f | v | w |\n|---|---|---|\n| $|x|$ | abs | keep |', ['|x|']],
    ['| $|a|$ | b |\n|---|---|\n| 1 | 2 |', ['|a|']],
    ['col a | col b\n--|--\n$P(A|B)$ | foo', ['P(A|B)']],
    ['| a | b |\n|---|---|\n| \\(|y|\\) | $\\|z\\|$ |', ['|y|', '|z|']],
    [
      "| c | f |\n| --- | --- |\n| Bayes' | $P(A | B)= \\frac{P(AB)}{P(B)}$ |",
      ['P(A | B)= \\frac{P(AB)}{P(B)}'],
    ],
    ['| a | b |\n|---|---|\n| $5 | $10 |\n|$5|$x|', []],
  ])('%s', (text, expected) => {
    expect(texts(text)).toEqual(expected);
  });

  it('keeps the cells of a table whole', () => {
    const rows = within(
      'tr',
      '| f | v | w |\n|---|---|---|\n| $|x|$ | abs | keep |\n| $5 | $6 | $x|y$ |',
    );
    expect(rows.map((row) => row?.match(/<t[hd]>/g)?.length)).toEqual([3, 3, 3]);
    expect(rows[1]).toContain('keep');
    expect(html('| $|x|$ | b |\n|---|---|\n| 1 | 2 |')).not.toContain('\ufdd0');
  });

  it('goes on behind a formula as before', () => {
    expect(html('\\[\na = b\n\nc = d\n\\]\nand then text *ok*')).toContain(
      '<p>and then text <em>ok</em></p>',
    );
  });
});
