// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { draw } from './diagram';
import { PAYLOADS } from '../test/payloads';

const COLOURS = { bg: 'rgb(255, 253, 250)', fg: 'rgb(43, 35, 28)' };
const FLOW = 'graph TD\n A[Logs] --> B{Lit?}\n B -->|yes| C((Warm))';

/** Parses the image as a browser does: as XML, in which any mistake is an error. */
function parsed(svg: string): Document {
  const file = new DOMParser().parseFromString(svg, 'image/svg+xml');
  expect(file.querySelector('parsererror')).toBeNull();
  return file;
}

function expectHarmless(svg: string) {
  const file = parsed(svg);
  expect(
    file.querySelector('script, foreignObject, image, use, a, iframe, animate, set'),
  ).toBeNull();
  for (const element of file.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      expect(name).not.toMatch(/^on|href|^src$|^style$/i);
      if (name !== 'xmlns') expect(value).not.toMatch(/url\((?!#)|javascript:|https?:/i);
    }
  }
  for (const style of file.querySelectorAll('style')) {
    expect(style.textContent).not.toMatch(/@import|url\(/);
  }
}

describe('a diagram', () => {
  it.each([
    FLOW,
    'sequenceDiagram\n A->>B: Is it lit?\n B-->>A: yes',
    'stateDiagram-v2\n [*] --> Cold\n Cold --> Warm: light',
    'classDiagram\n class Fire { +burn() }\n Fire <|-- Ember',
    'erDiagram\n HEARTH ||--o{ LOG : burns',
    'pie title Woods\n "Oak": 3',
    'gantt\n title Wood\n Stack: 2025-01-06, 3d',
    '---\ntitle: Woods\n---\n%%{init: {"theme": "dark"}}%%\npie\n "Oak": 3',
  ])('%s is drawn', (source) => {
    const svg = draw(source, COLOURS) ?? '';
    expect(parsed(svg).querySelectorAll('text').length).toBeGreaterThan(0);
    expectHarmless(svg);
  });

  it('says what its source says, in the colours of the page', () => {
    const svg = draw(FLOW, COLOURS) ?? '';
    expect(parsed(svg).documentElement.textContent).toMatch(/Logs[^]*Lit\?[^]*Warm/);
    expect(svg).toContain('--fg: rgb(43, 35, 28)');
  });

  it.each([
    'mindmap\n root((Fire))\n  Wood',
    'pie title Woods\n Oak 3',
    'gantt\n Stack: after nothing, 3d',
    'nothing of the kind',
    '',
    `graph TD\n ${'A --> B\n'.repeat(2000)}`,
  ])('%s is not drawn, and nothing breaks', (source) => {
    expect(draw(source, COLOURS)).toBeNull();
  });

  it.each([
    ...PAYLOADS,
    '\u0000\u0008\u001b[31m\ud800 \uffff',
    ']]>&#0;&lt;script&gt;',
    '</style><script>alert(1)</script>',
    '"]:::x\n style A fill:url(https://example.org/x)',
  ])('nothing of %s gets into it', (payload) => {
    for (const source of [
      `graph TD\n A["${payload}"] --> B`,
      `graph TD\n A --> B\n style A fill:${payload}`,
      `graph TD\n A --> B\n click A "${payload}"`,
      `sequenceDiagram\n A->>B: ${payload}`,
      `pie title ${payload}\n "${payload}": 3\n "Oak": 2`,
      `gantt\n title ${payload}\n section ${payload}\n ${payload.replace(/:/g, '')}: 2025-01-06, 3d`,
      `gantt\n axisFormat ${payload}\n dateFormat ${payload}\n A: 2025-01-06, 3d`,
    ]) {
      const svg = draw(source, COLOURS);
      if (svg !== null) expectHarmless(svg);
    }
  });
});
