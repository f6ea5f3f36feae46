/**
 * Conformance kits: what the loop and its hosts rely on in a model adapter, in a session store and in a tool, as lists of
 * cases that any test runner can run. Needs no test runner.
 *
 * @module
 */
export type { ConformanceCase, ConformanceSkips, GroupOf } from './conformance-case.ts';
export {
  llmConformance,
  type LLMConformanceCase,
  type LLMConformanceOptions,
} from './llm-conformance.ts';
export type { LLMConformanceCaseId, LLMConformanceGroup } from './llm-conformance-case.ts';
export type {
  LLMScene,
  LLMSceneCall,
  LLMSceneEdge,
  LLMSceneFail,
  LLMSceneFailure,
  LLMSceneFinish,
  LLMSceneFragment,
  LLMScenePart,
  LLMSceneRefuse,
  LLMSceneReplied,
  LLMSceneRequest,
  LLMSceneStart,
  LLMSceneStep,
  LLMSceneStop,
  LLMSceneText,
  LLMSceneThinking,
  LLMSceneWait,
  LLMSentCall,
  LLMSentResult,
  LLMUnderTest,
} from './llm-conformance-scene.ts';
export {
  storeConformance,
  type StoreConformanceCase,
  type StoreConformanceOptions,
} from './store-conformance.ts';
export type { StoreConformanceCaseId, StoreConformanceGroup } from './store-conformance-case.ts';
export type { CreateStore, StoreUnderTest } from './store-conformance-stage.ts';
export {
  toolConformance,
  type ToolConformanceCase,
  type ToolConformanceOptions,
} from './tool-conformance.ts';
export type { ToolConformanceCaseId, ToolConformanceGroup } from './tool-conformance-case.ts';
export type { BadToolInput, CreateTool, ToolInputs, ToolUnderTest } from './tool-conformance-stage.ts';
