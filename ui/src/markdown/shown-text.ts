/** The text of a Markdown source as the page shows it: without marks, with the names of links and the code of blocks. */
import { Blocks } from './blocks';

/** What of a rendered text is no text of its author: heads of code blocks, and what is only for screen readers. */
export const NOT_TEXT = '.md-code-head, .katex-mathml, [hidden]';

/** A text of the page, without what is not its author's. */
export function textNodes(root: Node): Text[] {
  const nodes: Text[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement?.closest(NOT_TEXT)) nodes.push(node as Text);
  }
  return nodes;
}

export function shownText(markdown: string): string {
  const template = document.createElement('template');
  const pieces = new Blocks().update(markdown, false).map((block) => {
    if (block.code) return block.code.text;
    // Nothing in a template loads or runs, and `Blocks` has sanitised it.
    template.innerHTML = block.html;
    return textNodes(template.content)
      .map((node) => node.data)
      .join('');
  });
  return pieces.join('\n');
}
