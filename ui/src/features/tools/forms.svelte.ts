/** Forms that tool servers ask the user to fill in, mirrored from the application. */
import type { Backend } from '../../backend/backend';
import type { AppEvent, ToolForm, ToolFormAction, ToolFormField } from '../../backend/bindings';

/** What the fields of a form hold while the user fills them in, by name. */
export type FormValues = Record<string, unknown>;

export class ToolFormsState {
  /** Waiting for the user, the oldest first. */
  open = $state.raw<readonly ToolForm[]>([]);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.open = await this.#backend.call('tool_forms', {});
  }

  apply(event: AppEvent): void {
    if (event.type === 'tool_form_opened') this.#put(event.form);
    if (event.type === 'tool_form_closed') this.#remove(event.id);
  }

  /** Throws if a value is missing or not allowed; the form stays open then. */
  async answer(form: ToolForm, action: ToolFormAction, values: FormValues = {}): Promise<void> {
    const { id } = form;
    await this.#backend.call('tool_form_answer', { id, action, values });
    this.#remove(id);
  }

  #put(form: ToolForm): void {
    this.open = [...this.open.filter((it) => it.id !== form.id), form];
  }

  #remove(id: string): void {
    this.open = this.open.filter((it) => it.id !== id);
  }
}

/** What a field holds before the user changes it. */
export function initialValue({ kind, default: given }: ToolFormField): unknown {
  if (given !== null) return given;
  if (kind.kind === 'flag') return false;
  if (kind.kind === 'multiple_choice') return [];
  return kind.kind === 'number' ? null : '';
}

/** The values that are sent. An empty field is left out, unless the user has emptied it. */
export function sentValues(fields: readonly ToolFormField[], held: FormValues): FormValues {
  const isSent = ({ name, default: given }: ToolFormField) =>
    held[name] !== null && (held[name] !== '' || typeof given === 'string');
  return Object.fromEntries(fields.filter(isSent).map(({ name }) => [name, held[name]]));
}
