// @vitest-environment jsdom
import { describe, expect, it, vi } from 'vitest';
import { handlePaste } from './handle-paste';
import type { Inglenook } from './inglenook.svelte';

describe('what a web view keeps from the page', () => {
  const appWith = (paths: string[], picture: ArrayBuffer) => ({
    backend: { clipboardPaths: async () => paths, clipboardPicture: async () => picture },
    chat: { id: 'c' },
    attachments: { addPath: vi.fn(async () => 0), addFile: vi.fn(async () => 0) },
    attempt: (work: () => Promise<unknown>) => work(),
  });

  const paste = (types: string[]) => {
    const event = new Event('paste', { cancelable: true });
    const clipboardData = { types, files: [], getData: () => '' };
    return Object.assign(event, { clipboardData }) as unknown as ClipboardEvent;
  };

  it('is asked for: copied files by their paths, which are no text', async () => {
    const app = appWith(['/a.png', '/b.txt'], new ArrayBuffer(3));
    const event = paste(['text/uri-list']);
    handlePaste(app as unknown as Inglenook, event);
    await vi.waitFor(() => expect(app.attachments.addPath).toHaveBeenCalledTimes(2));
    expect(app.attachments.addPath).toHaveBeenCalledWith('c', '/b.txt');
    expect(app.attachments.addFile).not.toHaveBeenCalled();
    expect(event.defaultPrevented).toBe(true);
  });

  it('is a picture where no files are copied, or nothing', async () => {
    const app = appWith([], new Uint8Array([1, 2, 3]).buffer);
    const event = paste([]);
    handlePaste(app as unknown as Inglenook, event);
    await vi.waitFor(() => expect(app.attachments.addFile).toHaveBeenCalledOnce());
    const [[id, file]] = app.attachments.addFile.mock.calls as unknown as [[string, File]];
    expect([id, file.name, file.size]).toEqual(['c', 'Pasted image', 3]);
    expect(event.defaultPrevented).toBe(false);

    const empty = appWith([], new ArrayBuffer(0));
    handlePaste(empty as unknown as Inglenook, paste([]));
    await Promise.resolve();
    expect(empty.attachments.addFile).not.toHaveBeenCalled();
  });

  it('is nothing in a browser', () => {
    const event = paste(['text/uri-list']);
    const app = { ...appWith([], new ArrayBuffer(0)), backend: {} };
    handlePaste(app as unknown as Inglenook, event);
    expect(event.defaultPrevented).toBe(false);
  });
});
