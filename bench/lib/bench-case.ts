/** Bench case: what a case says of itself. It measures in processes of its own; the runner does the arithmetic. */

/** What one measured process found, by name. */
export type Numbers = Readonly<Record<string, number>>;

/** One measured process. */
export interface Measurement {
  /** Unique in the case. */
  readonly name: string;
  /** Flags of Node that it needs. @defaultValue none */
  readonly nodeFlags?: readonly string[];
  /** How long it may take, in milliseconds. @defaultValue 120,000 */
  readonly patienceMs?: number;
  /** Runs in the measured process. Throws if what was measured did not do its work. */
  measure(): Promise<Numbers>;
}

/** One number of one measurement. */
export type Source = readonly [measurement: string, number: string];

/** A figure and what it is held against. */
export interface Figure {
  readonly metric: string;
  readonly unit: string;
  readonly value: Source;
  /** Absent for a figure that says enough alone, such as a share. */
  readonly ratio?: {
    readonly metric: string;
    /** What the value is divided by, taken from the same repetition. */
    readonly to: Source;
    /** What that is, for the table. */
    readonly label: string;
  };
}

/** A case: measured processes, and the figures that come of their numbers. */
export interface BenchCase {
  readonly name: string;
  /** How often each measurement is made, unless the command line says otherwise. */
  readonly repetitions: number;
  readonly measurements: readonly Measurement[];
  readonly figures: readonly Figure[];
}
