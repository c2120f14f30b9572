import { describe, expect, it } from 'vitest';
import { loadReleaseNotes, releaseNotes } from './release-notes';

describe('release notes', () => {
  it('begin with the newest version', () => {
    const text =
      '# Changelog\n\nOf the form.\n\n## [1.1.0] - 2027-01-02\n\n- New\n\n## [1.0.0] - 2026-12-01\n';
    expect(releaseNotes(text)).toBe('## 1.1.0 - 2027-01-02\n\n- New\n\n## 1.0.0 - 2026-12-01\n');
  });

  it('break no line within an entry', () => {
    const text =
      '## 1.0.0\n\n#### Added\n\n- One that is\n  long\n- **Two**\n\nA text\nof lines.\n';
    expect(releaseNotes(text)).toBe(
      '## 1.0.0\n\n#### Added\n\n- One that is long\n- **Two**\n\nA text of lines.\n',
    );
  });

  it('are the whole text where no version is named', () => {
    expect(releaseNotes('nothing yet')).toBe('nothing yet');
  });

  it('come from the changelog of this version', async () => {
    expect(await loadReleaseNotes()).toMatch(/^## Unreleased\n|^## \d+\.\d+\.\d+ /);
  });
});
