/** The agent: what it is made of, and where it keeps what it must not forget. All there is to embedding turnloop is here. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAgent, searchConversations, type Agent, type AgentOptions } from 'turnloop/agent';
import { readProjectRules } from 'turnloop/agent/files';
import { createMemory, fileMemoryStore, type MemoryOwner } from 'turnloop/memory';
import { finalAnswer } from 'turnloop/policies';
import { fileSessionStore, type SessionStore } from 'turnloop/sessions';
import type { ChosenModel } from './model.ts';
import { createTools } from './tools/index.ts';
import { DATA_FOLDER, type Workspace } from './workspace.ts';

/** A model that is still at it after so many steps is not getting there. */
const MAX_STEPS = 50;

/** Whose memory it is: the project's, wherever its folder is moved to. */
export const MEMORY_OWNERS: readonly MemoryOwner[] = [{ scope: 'project', scopeId: '.' }];

/** Makes the agent for a folder. @param onProblem - Told of what failed beside a turn. */
export function createCodingAgent(model: Pick<ChosenModel, 'llm' | 'isTiny'>, workspace: Workspace, onProblem?: (problem: Error) => void): Agent {
  const data = makeDataFolder(workspace);
  const sessions = fileSessionStore(join(data, 'sessions'));
  return createAgent({
    name: 'coder',
    llm: model.llm,
    tools: createTools(workspace),
    maxSteps: MAX_STEPS,
    hooks: [finalAnswer()],
    sessions,
    onProblem,
    // The embedded model knows its five tools, and reads nothing else.
    ...(!model.isTiny && forLargeModels(model, workspace, sessions)),
  });
}

function forLargeModels({ llm }: Pick<ChosenModel, 'llm'>, workspace: Workspace, sessions: SessionStore): Partial<AgentOptions> {
  return {
    // Read anew for each turn: what stays the same keeps the provider's cache.
    systemPrompt: async () => ({ base: llm.systemPrompt, projectRules: await readProjectRules(workspace.root) }),
    memory: createMemory({
      store: fileMemoryStore(join(workspace.root, DATA_FOLDER, 'memory')),
      llm, // Says after each turn what is worth remembering.
      searchConversations: searchConversations(sessions, { maySee: () => true }), // All of them are this person's.
    }),
    subAgents: {
      types: {
        explorer: { description: 'Reads and searches files, changes nothing. Several may run at once.' },
        worker: { description: 'Does a whole task, with all tools.', tools: createTools(workspace), maxSteps: 20 },
      },
    },
  };
}

/** Makes the folder for sessions and memory, which keeps itself out of the project's git. */
function makeDataFolder({ root }: Workspace): string {
  const folder = join(root, DATA_FOLDER);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '.gitignore'), '*\n');
  return folder;
}
