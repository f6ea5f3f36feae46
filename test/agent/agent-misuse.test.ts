import { describe, expect, it } from 'vitest';
import { createAgent, type AgentOptions } from 'turnloop/agent';
import { scriptedLLM } from 'turnloop/testing';

const MISUSE: readonly (readonly [option: string, value: unknown, says: RegExp])[] = [
  ['context', { windw: 1 }, /windw/],
  ['loopGuard', { stop: 1 }, /stop/],
  ['approval', { rule: [] }, /rule/],
  ['subAgents', { maxStep: 1 }, /maxStep/],
  ['maxSteps', -1, /maxSteps/],
  ['hooks', [{}], /hooks\[0\]/],
  ['recoveries', [{}], /recoveries\[0\]/],
  ['stopWhen', [3], /stopWhen\[0\]/],
  ['tools', [{}], /tools\[0\]/],
  ['retry', { attempts: 1 }, /attempts/],
  ['timeouts', { totalMs: 'soon' }, /totalMs/],
  ['thinkTags', { tag: 'x' }, /tag/],
  ['continuePaused', { most: 1 }, /most/],
  ['memory', {}, /`memory`/],
  ['sessions', {}, /`sessions`/],
  ['learned', { notes: {} }, /learned\.notes/],
  ['handoffs', 'billing', /`handoffs`/],
  ['runtime', {}, /`runtime`/],
  ['guardrails', { inputs: [] }, /inputs/],
  ['name', '', /`name`/],
  ['model', 'gpt', /no option `model`/],
];

describe('misuse of createAgent', () => {
  it.each(MISUSE)('law 13 `%s` of %o is refused when the agent is made', (option, value, says) => {
    const options = { llm: scriptedLLM([]), [option]: value } as unknown as AgentOptions;
    expect(() => createAgent(options)).toThrow(TypeError);
    expect(() => createAgent(options)).toThrow(says);
  });
});
