// The built page, served by the stand-in under the policy of the real one.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { extname, join, normalize } from 'node:path';

const DIST = new URL('../dist/', import.meta.url).pathname;
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; " +
  "connect-src 'self'; frame-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'";

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

const FRAME = readFileSync(new URL('../../src-tauri/crates/server/src/preview/frame.js', import.meta.url), 'utf8');
const FRAME_CSP =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; " +
  "form-action 'none'; base-uri 'none'; webrtc 'block'; sandbox allow-scripts; frame-ancestors 'self'; script-src ";
const FRAMES = {
  '/preview/static': `'sha256-${createHash('sha256').update(FRAME).digest('base64')}'`,
  '/preview/scripts': "'unsafe-inline'",
};

/** Answers with a file of the built page, or with an empty frame for what a model wrote. */
export function file(path, response) {
  if (path in FRAMES) {
    const policy = { 'content-security-policy': FRAME_CSP + FRAMES[path], 'x-dns-prefetch-control': 'off' };
    response.writeHead(200, { 'content-type': 'text/html', ...policy });
    response.end(`<!doctype html><meta charset="utf-8"><title>Preview</title><script>${FRAME}</script>`);
    return;
  }
  const full = join(DIST, normalize(path === '/' ? '/index.html' : path));
  if (!full.startsWith(DIST) || !existsSync(full) || !statSync(full).isFile()) { response.writeHead(404).end(); return; }
  response.writeHead(200, { 'content-type': TYPES[extname(full)] ?? 'application/octet-stream', 'content-security-policy': CSP });
  createReadStream(full).pipe(response);
}
