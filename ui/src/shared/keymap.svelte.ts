/** The keys in use: those that commands come with, and over them those that the user chose. */
import { SHORTCUTS, type CommandId, type Shortcut } from './shortcuts';

export type CustomKeys = Readonly<Record<string, readonly string[]>>;

class Keymap {
  /** By command; an empty list: it has no key. */
  custom = $state.raw<CustomKeys>({});

  keysOf(shortcut: Shortcut): readonly string[] {
    return this.custom[shortcut.id] ?? shortcut.keys;
  }

  keysOfId(id: CommandId): readonly string[] {
    const shortcut = SHORTCUTS.find((it) => it.id === id);
    return shortcut ? this.keysOf(shortcut) : [];
  }

  /** The command that has these keys already, beside `id`. */
  holder(keys: string, id: CommandId): Shortcut | undefined {
    return SHORTCUTS.find((it) => it.id !== id && this.keysOf(it).includes(keys));
  }

  /** What would be chosen with `id` having these keys, and nobody else having them. */
  with(id: CommandId, keys: readonly string[]): CustomKeys {
    const next: Record<string, readonly string[]> = { ...this.custom, [id]: keys };
    for (const other of SHORTCUTS.filter((it) => it.id !== id)) {
      const kept = this.keysOf(other).filter((it) => !keys.includes(it));
      if (kept.length < this.keysOf(other).length) next[other.id] = kept;
    }
    return next;
  }

  /** As `id` came; keys that it gets back leave those who have them. */
  without(id: CommandId): CustomKeys {
    const original = SHORTCUTS.find((it) => it.id === id)?.keys ?? [];
    const entries = Object.entries(this.with(id, original));
    return Object.fromEntries(entries.filter(([command]) => command !== id));
  }
}

/** One keyboard, one map. */
export const keymap = new Keymap();
