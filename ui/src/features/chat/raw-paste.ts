/** Recognizes the shortcut that pastes as plain text. */

/** Ctrl+Shift+V or Cmd+Shift+V: whatever is pasted stays in the message box. */
export const isRawPaste = (
  event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'shiftKey' | 'altKey'>,
): boolean =>
  event.key.toLowerCase() === 'v' &&
  (event.ctrlKey || event.metaKey) &&
  event.shiftKey &&
  !event.altKey;
