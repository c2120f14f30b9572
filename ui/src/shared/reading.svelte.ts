/** How texts are shown, as the settings say. Set by the application, read by what renders Markdown. */
class ReadingState {
  /** Whether long lines of code blocks wrap until a block is switched. */
  wrapsCode = $state(false);
}

export const reading = new ReadingState();
