/** All scenarios of the project: `npm run simulate` plays them. */
export { contextScenario } from './context-scenario.ts';
export { coreScenario } from './core-scenario.ts';
export { handoffScenario } from './handoff-scenario.ts';
export { httpScenario } from './http-scenario.ts';
export { memoryScenario } from './memory-scenario.ts';
export { policiesScenario } from './policies-scenario.ts';
export { filesScenario, sessionScenario } from './session-scenarios.ts';
export { subAgentScenario } from './sub-agent-scenario.ts';
