/** Errors of cassettes: what is wrong with a file, and what a test did not do. */
import { TurnloopError } from '../../core/errors.ts';

/** What {@link CassetteError.code} may be. */
export type CassetteErrorCode = 'cassette_missing' | 'cassette_broken' | 'cassette_version' | 'cassette_unreadable' | 'cassette_unwritable' | 'cassette_not_done';

/**
 * A cassette that cannot be used, or was not used as recorded.
 *
 * Codes: `cassette_missing` (replay without a file) `cassette_broken` (the file is no cassette, or was damaged)
 * `cassette_version` (a newer turnloop wrote it) `cassette_unreadable` and `cassette_unwritable` (the disk refused)
 * `cassette_not_done` (`assertDone` found something). A request that matches nothing is no `CassetteError`: it is an
 * `LLMError` of kind `refused` and code `cassette_miss`, so that it passes through any adapter.
 */
export class CassetteError extends TurnloopError {
  override readonly name: string = 'CassetteError';
  /** Stable word for the failure, to switch on. */
  declare readonly code: CassetteErrorCode;

  constructor(code: CassetteErrorCode, message: string, cause?: unknown) {
    super(code, message, { cause });
  }
}
