/** Steps through the images of a chat. */
import type { Attachment } from '../../backend/bindings';

export type ChatImage = Pick<Attachment, 'id' | 'name'>;

/** The image before or after another one; null where there is none. */
export function imageBeside(
  images: readonly ChatImage[],
  id: string | undefined,
  step: -1 | 1,
): ChatImage | null {
  const at = images.findIndex((it) => it.id === id);
  return at < 0 ? null : (images[at + step] ?? null);
}
