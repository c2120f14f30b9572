/** What can be done about an answer that failed or ended early, and about a message that was not taken. */
import type { ErrorInfo, Message } from '../backend/bindings';
import type { ButtonAction } from '../shared/button-action';
import { t } from '../i18n';
import { showArticle } from './help-target';
import { suggestionsForMessage, suggestionsFor, toButtons } from './error-actions';
import type { Inglenook } from './inglenook.svelte';

/** Errors that asking again may well get past. For others something has to change first. */
const PASSING: readonly string[] = [
  ...['worker.crashed', 'worker.hung', 'worker.start', 'worker.thread', 'turn.failed'],
  ...['remote.busy', 'remote.failing', 'remote.silent', 'remote.unreachable', 'remote.broken'],
  ...['limit.turns', 'request.queue_full', 'kernels.gpu_lost'],
];

/** After the end of an answer, the most useful first. */
export function messageActions(app: Inglenook, message: Message): ButtonAction[] {
  const { error } = message;
  const isFailed = message.state === 'failed';
  const named = isFailed && error ? useNamedModel(app, error) : [];
  const suggestions = suggestionsForMessage(app, message).filter(
    // A named model is better than a list to choose from.
    (it) => it.to !== 'picker' || named.length === 0,
  );
  const steps = toButtons(app, suggestions, message.model);
  const [goOn, again] = [continueAnswer(app, message), retry(app, message)];
  const learn = isFailed && error ? learnMore(app, error.code) : [];
  if (!isFailed) {
    const mayRetry = message.state === 'interrupted' || goOn.length === 0;
    return [...goOn, ...(mayRetry ? again : []), ...steps];
  }
  const isPassing = error === null || PASSING.includes(error.code);
  return isPassing
    ? [...goOn, ...again, ...named, ...steps, ...learn]
    : [...named, ...steps, ...goOn, ...again, ...learn];
}

/** After an error of the chat itself, such as a message that was not taken. */
export function chatErrorActions(app: Inglenook, error: ErrorInfo): ButtonAction[] {
  const { chat } = app;
  const { id } = chat;
  const canReopen = id !== null && chat.messages.length === 0;
  const reopen: ButtonAction[] = canReopen
    ? [
        {
          label: t('common.try_again'),
          testid: 'open-again',
          icon: 'retry',
          run: () => void chat.open(id),
        },
      ]
    : [];
  const named = useNamedModel(app, error);
  const suggestions = suggestionsFor(error.code).filter(
    (it) => it.to !== 'picker' || named.length === 0,
  );
  return [...reopen, ...named, ...toButtons(app, suggestions), ...learnMore(app, error.code)];
}

const isIdle = ({ chat }: Inglenook): boolean =>
  !chat.answering && !chat.sending && !chat.compacting;

/** The application knows a model that can do what the chosen one can't. */
function useNamedModel(app: Inglenook, { action }: ErrorInfo): ButtonAction[] {
  const model = action?.type === 'use_model' ? app.models.find(action.model) : undefined;
  if (!model || !isIdle(app)) return [];
  const use = async () => {
    const last = app.chat.shown.at(-1);
    await app.chooseModel(model.id);
    // A refused question left no answer; then the last answer belongs to an earlier question.
    if (last?.role === 'assistant' && last.state === 'failed') {
      await app.chat.regenerate(last.id, model.id);
    }
  };
  const label = t('turn.use_model', { name: model.name });
  const run = () => void app.attempt(use);
  return [{ label, testid: 'step-use-model', icon: 'model', run }];
}

/** Whether the answer ended inside its only tool call. */
function endsInCall({ tool_calls: calls }: Message): boolean {
  const call = calls[0];
  if (!call || calls.length > 1) return false;
  try {
    JSON.parse(call.arguments);
    return false;
  } catch {
    return true;
  }
}

/** Only what is stored can be continued, and a whole tool call is not an early end. */
function continueAnswer(app: Inglenook, message: Message): ButtonAction[] {
  const hasText = message.text !== '' && message.tool_calls.length === 0;
  if (!(hasText || endsInCall(message)) || app.chat.temporary || !isIdle(app)) return [];
  const run = () => void app.chat.continueAnswer(message.id);
  return [{ label: t('turn.continue'), testid: 'continue', icon: 'play', run }];
}

function retry(app: Inglenook, message: Message): ButtonAction[] {
  if (!isIdle(app)) return [];
  const run = () => void app.chat.regenerate(message.id);
  return [{ label: t('common.try_again'), testid: 'retry', icon: 'retry', run }];
}

/** The article of the guide that explains an error. */
function learnMore(app: Inglenook, code: string): ButtonAction[] {
  const article = app.help.ofError(code);
  if (!article) return [];
  const run = () => showArticle(app, article.id);
  return [{ label: t('help.more'), testid: 'learn-more', icon: 'help', run }];
}
