/** What a button does, and how it is labelled. */
export interface ButtonAction {
  readonly label: string;
  readonly testid: string;
  run(): void;
}
