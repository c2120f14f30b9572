/** The key map: default shortcuts, overridden by the user's. */
import { SHORTCUTS, type CommandId, type Shortcut } from './shortcuts';

export type CustomKeys = Readonly<Record<string, readonly string[]>>;

class Keymap {
  /** Keys by command; an empty list: no key. */
  custom = $state.raw<CustomKeys>({});

  keysOf(shortcut: Shortcut): readonly string[] {
    return this.custom[shortcut.id] ?? shortcut.keys;
  }

  keysOfId(id: CommandId): readonly string[] {
    const shortcut = SHORTCUTS.find((it) => it.id === id);
    return shortcut ? this.keysOf(shortcut) : [];
  }

  /** Returns the other command that already has these keys. */
  holder(keys: string, id: CommandId): Shortcut | undefined {
    return SHORTCUTS.find((it) => it.id !== id && this.keysOf(it).includes(keys));
  }

  /** Returns the custom keys after giving `keys` to `id` and taking them from any other command. */
  with(id: CommandId, keys: readonly string[]): CustomKeys {
    const next: Record<string, readonly string[]> = { ...this.custom, [id]: keys };
    for (const other of SHORTCUTS.filter((it) => it.id !== id)) {
      const kept = this.keysOf(other).filter((it) => !keys.includes(it));
      if (kept.length < this.keysOf(other).length) next[other.id] = kept;
    }
    return next;
  }

  /** Returns the custom keys after resetting `id`, taking its default keys from other commands. */
  without(id: CommandId): CustomKeys {
    const original = SHORTCUTS.find((it) => it.id === id)?.keys ?? [];
    const entries = Object.entries(this.with(id, original));
    return Object.fromEntries(entries.filter(([command]) => command !== id));
  }
}

/** The one key map of the page. */
export const keymap = new Keymap();
