/** What the menu over the message box gets from the composer. */
export interface ComposerMenu {
  readonly draft: string;
  /** Id for the element of the menu, which the message box refers to. */
  readonly listId: string;
  /** Replaces the draft with the text of a prompt. */
  insert(text: string): void;
}
