/** Keeps a `|` within a formula from ending a table's cell. */
import { formulaRanges, mayHoldFormula } from './formulas';

/** Stands for a `|` within a formula while cells are split. A noncharacter, so no text holds it. */
export const PIPE_STAND_IN = '\ufdd0';

const TABLE_HEAD =
  /^[^\n]+\n {0,3}(\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?)[ \t]*(?:\n|$)/;
const BLANK_LINE = /\n[ \t]*\n/;
const OUTER_PIPES = /^[ \t]*\||(?<!\\)\|[ \t]*$/g;
const CELL_END = /(?<!\\)\|/g;

/** The same text with stand-ins, as long as before. Unchanged where no table begins. */
export function maskFormulaPipes(source: string): string {
  const head = TABLE_HEAD.exec(source);
  if (!head || source.includes(PIPE_STAND_IN)) return source;
  const end = BLANK_LINE.exec(source)?.index ?? source.length;
  const table = source.slice(0, end);
  if (!mayHoldFormula(table)) return source;
  const columns = countCells(head[1] ?? '');
  const rows = table.split('\n').map((row) => maskRow(row, columns));
  return rows.join('\n') + source.slice(end);
}

/** Of two readings, the one with the table's number of cells is right. */
function maskRow(row: string, columns: number): string {
  let masked = '';
  let at = 0;
  for (const [from, to] of formulaRanges(row)) {
    masked += row.slice(at, from) + row.slice(from, to).replace(CELL_END, PIPE_STAND_IN);
    at = to;
  }
  masked += row.slice(at);
  const isPlain = countCells(row) === columns && countCells(masked) !== columns;
  return isPlain ? row : masked;
}

const countCells = (row: string): number =>
  (row.replace(OUTER_PIPES, '').match(CELL_END)?.length ?? 0) + 1;

/** Puts the pipes back. */
export const unmaskPipes = (text: string): string => text.replaceAll(PIPE_STAND_IN, '|');
