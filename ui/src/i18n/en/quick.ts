/** The quick window and the keys that open it. */
export const quick = {
  open_in_main: 'Open in main window',
  on_this_computer: 'on this computer',
  no_model: 'No model chosen',
  keys_note:
    'Opens a small window above all others, also while Inglenook is hidden in the tray. Off until you set keys. On Wayland, the desktop gives keys to no program by itself: in its keyboard settings, assign keys to the command “inglenook inglenook://quick”.',
} as const;
