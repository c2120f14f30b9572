/** Conversations by the day of their last change, as a person would say it. */
import type { ConversationSummary, Folder } from '../../backend/bindings';
import { treeOf, type FolderNode } from './folder-tree';

export type GroupName = 'today' | 'yesterday' | 'week' | 'month' | 'older';

export interface Group {
  readonly name: GroupName;
  readonly conversations: ConversationSummary[];
}

const NAMES: readonly GroupName[] = ['today', 'yesterday', 'week', 'month', 'older'];

/** Newest first within each group; empty groups are left out. Days are those of the local calendar. */
export function groupByDate(list: readonly ConversationSummary[], nowMs: number): Group[] {
  const starts = groupStarts(nowMs);
  const groups = new Map<GroupName, ConversationSummary[]>();
  for (const conversation of [...list].sort((a, b) => b.activity - a.activity)) {
    const at = starts.findIndex((start) => conversation.updated_ms >= start);
    const name = NAMES[at] ?? 'older';
    const group = groups.get(name);
    if (group) group.push(conversation);
    else groups.set(name, [conversation]);
  }
  return NAMES.flatMap((name) => {
    const conversations = groups.get(name);
    return conversations ? [{ name, conversations }] : [];
  });
}

export interface Arranged {
  readonly pinned: readonly ConversationSummary[];
  readonly folders: readonly FolderNode[];
  /** Conversations by the folder they lie in. */
  readonly inside: ReadonlyMap<string, readonly ConversationSummary[]>;
  readonly groups: readonly Group[];
}

/** Each conversation in one place: pinned ones first, then those in folders, then the rest by date. */
export function arrange(
  list: readonly ConversationSummary[],
  folders: readonly Folder[],
  nowMs: number,
): Arranged {
  const sorted = [...list].sort((a, b) => b.activity - a.activity);
  const known = new Set(folders.map((folder) => folder.id));
  const loose = sorted.filter((it) => !it.pinned);
  const inside = new Map(
    folders.map(({ id }) => [id, loose.filter((it) => it.folder === id)] as const),
  );
  return {
    pinned: sorted.filter((it) => it.pinned),
    folders: treeOf(folders),
    inside,
    groups: groupByDate(
      loose.filter((it) => it.folder === null || !known.has(it.folder)),
      nowMs,
    ),
  };
}

/** The first moment of each group, in the order of `NAMES`. Weeks start on Monday. */
function groupStarts(nowMs: number): number[] {
  const now = new Date(nowMs);
  const day = (offset: number) =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + offset).getTime();
  const sinceMonday = (now.getDay() + 6) % 7;
  return [
    day(0),
    day(-1),
    day(-sinceMonday),
    new Date(now.getFullYear(), now.getMonth(), 1).getTime(),
    -Infinity,
  ];
}
