import { describe, expect, it } from 'vitest';
import type { Download, DownloadState } from '../../backend/bindings';
import { downloadFraction, downloadName, describeDownload } from './download-status';
import { DownloadsState } from './store.svelte';
import { FakeBackend } from '../../test/fake-backend';

const GB = 1e9;
const error = { code: 'x', message: 'The disk is full.', remedy: 'Make room.' };
const download = (id: string, state: DownloadState, more: Partial<Download> = {}): Download => ({
  id,
  repository: 'a/b',
  path: 'dir/Model-Q4_K_M.gguf',
  parts: 1,
  bytes: 3.1 * GB,
  total: 4.7 * GB,
  fetched: 3.1 * GB,
  speed: 0,
  eta_s: null,
  state,
  notice: null,
  trust: { kind: 'published' },
  created_ms: Number(id),
  ...more,
});

describe('what a download says', () => {
  it.each<[DownloadState, Partial<Download>, string]>([
    [{ state: 'queued' }, {}, 'Queued'],
    [
      { state: 'downloading' },
      { speed: 12.4e6, eta_s: 125 },
      '3.1 of 4.7 GB · 12.4 MB/s · 2 min left',
    ],
    [{ state: 'downloading' }, {}, '3.1 of 4.7 GB'],
    [{ state: 'downloading' }, { bytes: 8e8 }, '800 MB of 4.7 GB'],
    [{ state: 'paused', reason: null }, {}, 'Paused at 3.1 of 4.7 GB'],
    [
      { state: 'paused', reason: error },
      {},
      '3.1 of 4.7 GB. The disk is full. The download resumes as soon as possible.',
    ],
    [
      { state: 'waiting_for_network', error },
      {},
      'Connection lost at 3.1 of 4.7 GB. Reconnecting automatically…',
    ],
    [{ state: 'verifying', fraction: 0.43 }, {}, 'Verifying: 43%'],
    [{ state: 'failed', error }, {}, 'The disk is full. Make room.'],
    [{ state: 'done', model: 'm' }, {}, 'In your library'],
  ])('%j', (state, more, expected) => {
    expect(describeDownload(download('1', state, more))).toBe(expected);
  });

  it('knows how far it is', () => {
    expect(downloadFraction(download('1', { state: 'downloading' }))).toBeCloseTo(0.66, 2);
    expect(downloadFraction(download('1', { state: 'queued' }, { total: 0, bytes: 0 }))).toBe(0);
    expect(downloadFraction(download('1', { state: 'verifying', fraction: 0.2 }))).toBe(0.2);
  });

  it('is called after its file', () => {
    expect(downloadName(download('1', { state: 'queued' }))).toBe('Model-Q4_K_M');
  });
});

describe('DownloadsState', () => {
  it('folds what the application says, oldest first', async () => {
    const backend = new FakeBackend();
    backend.on('download_list', () => [
      download('2', { state: 'queued' }),
      download('1', { state: 'downloading' }),
    ]);
    const downloads = new DownloadsState(backend);
    await downloads.load();
    expect(downloads.list.map((it) => it.id)).toEqual(['1', '2']);
    expect(downloads.fraction).toBeCloseTo(0.66, 2);
    const done = download('1', { state: 'done', model: 'm' }, { bytes: 4.7 * GB });
    downloads.apply({ type: 'download_changed', download: done });
    downloads.apply({ type: 'download_removed', id: '2' });
    expect(downloads.list).toEqual([done]);
    expect(downloads.active).toEqual([]);
    expect(downloads.fraction).toBe(null);
  });
});
