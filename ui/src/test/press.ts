/** The fields of a keyboard event for a text such as `Ctrl+Shift+o`. */
export function press(text: string) {
  const parts = text.split('+');
  return {
    key: parts.at(-1) ?? '',
    ctrlKey: parts.includes('Ctrl'),
    metaKey: parts.includes('Cmd'),
    altKey: parts.includes('Alt'),
    shiftKey: parts.includes('Shift'),
    isComposing: false,
    keyCode: 0,
  };
}
