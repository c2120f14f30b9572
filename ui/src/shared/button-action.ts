/** An action with the label of its button. */
export interface ButtonAction {
  readonly label: string;
  readonly testid: string;
  run(): void;
}
