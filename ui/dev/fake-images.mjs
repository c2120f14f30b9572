/** Images of the stand-in: the file itself is its thumbnail. */

const TYPES = { png: 'image/png', jpg: 'image/jpeg', webp: 'image/webp' };

/** Fewer bytes than any image has. */
const MIN_BYTES = 20;

function unreadable(name) {
  const message = `${name} can't be attached: the image cannot be read.`;
  const info = { code: 'image.unreadable', message, remedy: 'Choose another image.' };
  return Object.assign(new Error(message), { status: 400, info });
}

/** What an attachment of this name has beside its name, if it is an image. Throws for one that is cut off. */
export function imageFields(name, buffer) {
  const type = TYPES[name.split('.').at(-1)];
  if (!type) return {};
  if (buffer.length < MIN_BYTES) throw unreadable(name);
  const thumbnail = `data:${type};base64,${buffer.toString('base64')}`;
  return { kind: 'image', image: { width: 320, height: 200, thumbnail } };
}

export function originalOf({ image: { width, height, thumbnail } }) {
  return { url: thumbnail, width, height };
}
