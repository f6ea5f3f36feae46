/** Report: the figures of a run, as a table or as lines of JSON. */
import { availableParallelism, loadavg } from 'node:os';
import type { BenchCase, Numbers, Source } from './bench-case.ts';
import { spread, type Spread } from './statistics.ts';

/** The numbers of one repetition, by measurement. */
export type Repetition = ReadonlyMap<string, Numbers>;

/** A figure over all repetitions. */
export interface MeasuredFigure {
  readonly caseName: string;
  readonly metric: string;
  readonly unit: string;
  readonly value: Spread;
  /** Absent for a figure that stands alone. */
  readonly ratio?: MeasuredRatio;
}

/** What a figure is held against. */
interface MeasuredRatio {
  readonly metric: string;
  /** Of value and limit of the same repetition. */
  readonly value: Spread;
  readonly limit: Spread;
  readonly limitName: string;
}

/** The figures of a case. */
export function figuresOf({ name, figures }: BenchCase, repetitions: readonly Repetition[]): readonly MeasuredFigure[] {
  return figures.map(({ metric, unit, value, ratio }) => {
    const values = repetitions.map((repetition) => read(repetition, value));
    const figure = { caseName: name, metric, unit, value: spread(values) };
    if (ratio === undefined) return figure;
    const limits = repetitions.map((repetition) => read(repetition, ratio.to));
    return {
      ...figure,
      ratio: {
        metric: ratio.metric,
        value: spread(values.map((one, index) => one / limits[index]!)),
        limit: spread(limits),
        limitName: ratio.label,
      },
    };
  });
}

function read(repetition: Repetition, [measurement, name]: Source): number {
  const number = repetition.get(measurement)?.[name];
  if (number === undefined) throw new Error(`The measurement "${measurement}" gave no number "${name}".`);
  return number;
}

/** One line of JSON for each metric, once. */
export function jsonLines(figures: readonly MeasuredFigure[]): readonly string[] {
  const lines = figures.flatMap(({ caseName, metric, unit, value, ratio }) => [
    jsonLine(caseName, metric, { value: value.median, unit }),
    ...(ratio === undefined ? [] : [jsonLine(caseName, ratio.metric, { value: ratio.value.median, unit: 'x' })]),
  ]);
  return [...new Set(lines)];
}

function jsonLine(caseName: string, metric: string, { value, unit }: { readonly value: number; readonly unit: string }): string {
  return JSON.stringify({ case: caseName, metric, value: Number(value.toPrecision(4)), unit });
}

/** What to know before reading the figures. */
export function machineLine(): string {
  const cores = availableParallelism();
  const load = loadavg()[0]!;
  const busy = load > cores * 0.75 ? `; busy (load ${load.toFixed(1)}): trust the ratios more than the figures` : '';
  return `Node ${process.version}, ${cores} cores${busy}`;
}

const HEADER = ['figure', 'median', 'min–max', 'ratio', 'min–max', 'is', 'against'];
const RIGHT_ALIGNED: ReadonlySet<number> = new Set([1, 2, 3, 4]);

/** The figures as a table. */
export function table(figures: readonly MeasuredFigure[]): string {
  const rows = figures.map(({ caseName, metric, unit, value, ratio }) => [
    `${caseName}/${metric}`,
    `${short(value.median)} ${unit}`,
    range(value),
    ...(ratio === undefined ? ['', '', '', ''] : ratioCells(ratio, unit)),
  ]);
  const widths = HEADER.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (RIGHT_ALIGNED.has(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd();
  return [line(HEADER), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n');
}

function ratioCells({ metric, value, limit, limitName }: MeasuredRatio, unit: string): readonly string[] {
  return [`${short(value.median)} ×`, range(value), metric, `${limitName}, ${short(limit.median)} ${unit}`];
}

function range({ min, max }: Spread): string {
  return `${short(min)}–${short(max)}`;
}

/** Three digits that count. */
function short(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : value >= 1 ? 2 : 3);
}
