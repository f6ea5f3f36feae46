/** Report: the figures of sessions, and their table. */
import type { SessionReport } from './play-session.ts';

/** The four figures, over all sessions together. */
export interface SessionFigures {
  readonly turnsLost: number;
  /** Foreseeable refusals. */
  readonly refusedPer1000: number;
  /** Tokens of summary requests, input and output, of all tokens. */
  readonly summaryShare: number;
  /** Tokens of a request that repeat the beginning of the one before. */
  readonly prefixReuse: number;
}

export function figuresOf(reports: readonly SessionReport[]): SessionFigures {
  const sum = (read: (report: SessionReport) => number): number => reports.reduce((total, report) => total + read(report), 0);
  const summaries = sum(({ model }) => model.summaryInput + model.summaryOutput);
  return {
    turnsLost: sum(({ turnsLost }) => turnsLost),
    refusedPer1000: (1000 * sum(({ model }) => model.foreseeable)) / sum(({ model }) => model.steps),
    summaryShare: summaries / (summaries + sum(({ model }) => model.stepInput + model.stepOutput)),
    prefixReuse: sum(({ model }) => model.reusedInput) / sum(({ model }) => model.followingInput),
  };
}

/** One line for each session, and one for all. */
export function table(reports: readonly SessionReport[]): string {
  const header = ['seed', 'steps', 'lost', 'summaries', 'provoked', 'foreseeable', 'refused/1000', 'summary', 'reuse', 'mean input', 'growth', 'largest', 'compactions', 'broken rules'];
  const line = (name: string, some: readonly SessionReport[]): readonly string[] => {
    const figures = figuresOf(some);
    const sum = (read: (report: SessionReport) => number): number => some.reduce((total, report) => total + read(report), 0);
    const steps = sum(({ model }) => model.steps);
    return [
      name,
      String(steps),
      String(figures.turnsLost),
      String(sum(({ model }) => model.summaries)),
      String(sum(({ model }) => model.provoked)),
      String(sum(({ model }) => model.foreseeable)),
      figures.refusedPer1000.toFixed(2),
      `${(100 * figures.summaryShare).toFixed(2)} %`,
      `${(100 * figures.prefixReuse).toFixed(2)} %`,
      String(Math.round(sum(({ model }) => model.stepInput) / steps)),
      String(Math.round(sum(({ model }) => model.grownInput) / sum(({ model }) => model.grownSteps))),
      String(Math.max(...some.map(({ model }) => model.largestInput))),
      counts(some.map(({ compactions }) => compactions)),
      counts(some.map(({ broken }) => new Map([...broken].map(([rule, { count }]) => [rule, count] as const)))),
    ];
  };
  const rows = [header, ...reports.map((report) => line(String(report.seed), [report])), line('all', reports)];
  const widths = header.map((_title, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => row.map((cell, column) => cell.padStart(widths[column]!)).join('  ')).join('\n');
}

function counts(maps: readonly ReadonlyMap<string, number>[]): string {
  const all = new Map<string, number>();
  for (const map of maps) for (const [name, count] of map) all.set(name, (all.get(name) ?? 0) + count);
  return [...all].map(([name, count]) => `${name} ${count}`).join(', ') || '–';
}

/** How large the outputs of the tools were. */
export function outputLine(reports: readonly SessionReport[]): string {
  const bytes = reports.flatMap(({ outputBytes }) => outputBytes).sort((left, right) => left - right);
  const at = (share: number): string => `${((bytes[Math.floor(share * (bytes.length - 1))] ?? 0) / 1000).toFixed(1)} KB`;
  const above = bytes.filter((size) => size > 50_000).length / bytes.length;
  return `${bytes.length} tool outputs: median ${at(0.5)}, 75 % below ${at(0.75)}, 90 % below ${at(0.9)}, least ${at(0)}, most ${at(1)}; ${(100 * above).toFixed(1)} % above 50 KB`;
}
