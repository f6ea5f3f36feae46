/**
 * Simulation: plays what an agent does thousands of times, each with another world from a seed, and has things go wrong at every
 * boundary: models, tools, stores, memory, listeners, the host, the process itself. Checks the laws of the loop after each run,
 * makes a failing one small, and tells its story. Needs no test runner and waits for nothing real.
 *
 * @module
 */
export { BOUNDARIES, type Boundary, type Fault, FAULT_KINDS, type FaultKind, formatFault, parseFault } from './fault.ts';
export type { ListenedEvent, RunReport, Scenario, SimulatedLife, SimulatedRun, SimulatedWorld } from './scenario.ts';
export { formatFired, simulate, type SimulateOptions, SimulationError, type SimulationFailure, type SimulationReport } from './simulate.ts';
export type { Violation } from './world.ts';
