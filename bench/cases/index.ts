/** The cases, in the order of the table. */
import type { BenchCase } from '../lib/bench-case.ts';
import { concurrency } from './concurrency.ts';
import { context } from './context.ts';
import { estimate } from './estimate.ts';
import { longTurn } from './long-turn.ts';
import { loop } from './loop.ts';
import { memory } from './memory.ts';
import { request } from './request.ts';
import { scheduler } from './scheduler.ts';
import { sessionCases } from './sessions.ts';
import { stream } from './stream.ts';
import { wireCases } from './wire.ts';

export const CASES: readonly BenchCase[] = [loop, stream, concurrency, scheduler, longTurn, request, ...wireCases, context, estimate, memory, ...sessionCases];
