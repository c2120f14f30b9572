import { describe, expect, it } from 'vitest';
import { previewDocument } from './preview-document';

describe('the document of a preview', () => {
  it('is the HTML itself, without links that prepare connections', () => {
    const html = (text: string) => previewDocument({ kind: 'html', text });
    expect(html('<p style="color:red">x</p>')).toBe('<p style="color:red">x</p>');
    expect(html('a<link rel="preconnect" title=">" href=//evil.example>b')).toBe('ab');
    expect(html('<LINK\nrel=dns-prefetch href="//evil.example')).not.toMatch(/<link/i);
    expect(html('<linkage>x</linkage>')).toBe('<linkage>x</linkage>');
  });

  it('is a page around an SVG', () => {
    const svg = previewDocument({ kind: 'svg', text: '<?xml version="1.0"?>\n<svg></svg>' });
    expect(svg).toMatch(/^<!doctype html>/);
    expect(svg).not.toContain('<?xml');
    expect(svg).toMatch(/<svg><\/svg>$/);
  });
});
