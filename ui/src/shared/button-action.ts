import type { IconName } from './icons';

/** An action with the label of its button. */
export interface ButtonAction {
  readonly label: string;
  readonly testid: string;
  /** In menus; without one there is none. */
  readonly icon?: IconName;
  run(): void;
}
