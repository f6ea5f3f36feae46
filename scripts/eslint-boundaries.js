/**
 * Owns the boundary rules of `src`: which room may import which, the order of the files in core, which file may
 * import which outside library, and that no import goes in a circle. `import type` counts like any other import,
 * except where the table says `types of`.
 *
 * A room is a folder under `src`; under `src/providers` each folder is one. `src/index.ts` is the door of core.
 */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import ts from 'typescript';

/** @import { Rule } from 'eslint' */

/** The files of core, each of which may import only those before it. */
export const CORE_ORDER = [
  'json',
  'assert',
  'message',
  'usage',
  'stop-reason',
  'errors',
  'runtime',
  'llm',
  'attempt-chat',
  'tool-access',
  'tool',
  'events',
  'hooks',
  'turn-control',
  'projection',
  'transcript',
  'event-dispatcher',
  'tool-scheduler',
  'tool-input',
  'tool-result',
  'turn-scope',
  'tool-plan',
  'call-run',
  'tool-call',
  'reply-view',
  'step-request',
  'turn-step',
  'turn-options',
  'turn-loop',
  'run-turn',
];

/**
 * Rooms a room may import besides core and itself; `types of X` allows `import type` only. A room that is not
 * listed may import core and itself. `cli` may import every room.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const ROOM_IMPORTS = {
  agent: ['policies', 'context', 'memory', 'sessions'],
  memory: ['sqlite'],
  sessions: ['sqlite'],
  policies: ['context'],
  mcp: ['agent'],
  restate: ['agent'],
  ui: ['agent'],
  testing: ['types of sessions', 'types of memory'],
};

/** What the room of each provider may import besides core and itself. */
const PROVIDER_IMPORTS = ['providers/shared'];

/**
 * Files that may import an outside library. Each is a door of its own, so nothing else in `src` may import it.
 *
 * @type {Readonly<Record<string, string>>}
 */
const OUTSIDE_LIBRARIES = {
  'zod/index.ts': 'zod',
  'emitter/index.ts': 'eventemitter3',
  'policies/concurrency.ts': 'p-limit',
  'testing/vitest/index.ts': 'vitest',
};

/** Rooms that run on Node and may import `node:` modules. */
const NODE_ROOMS = ['cli', 'inspector', 'mcp', 'memory', 'restate', 'sessions', 'testing'];

/** Files of other rooms that run on Node. Each is a door of its own, so nothing else in `src` may import it. */
const NODE_DOORS = ['agent/files.ts', 'testing/cassette/index.ts'];

/**
 * @param {string} file Path from `src`, with slashes.
 * @returns {string}
 */
function roomOf(file) {
  const [first = '', second] = file.split('/');
  if (second === undefined) return 'core';
  return first === 'providers' ? `providers/${second}` : first;
}

/**
 * What is wrong with one import, if anything.
 *
 * @param {string} from The importing file: its path from `src`, with slashes.
 * @param {string} specifier
 * @param {boolean} typeOnly
 * @returns {string | undefined}
 */
function checkImport(from, specifier, typeOnly) {
  if (!specifier.startsWith('.')) return checkOutside(from, specifier);

  const to = path.posix.normalize(path.posix.join(path.posix.dirname(from), specifier));
  if (to.startsWith('../')) return `src imports nothing outside src, so not '${specifier}'.`;

  const [fromRoom, toRoom] = [roomOf(from), roomOf(to)];
  if (fromRoom === 'core' && toRoom === 'core') return checkCoreOrder(from, to);
  if (NODE_DOORS.includes(to)) return `'${to}' needs Node: only its users import it.`;
  if (OUTSIDE_LIBRARIES[to] !== undefined) return `'${to}' needs '${OUTSIDE_LIBRARIES[to]}': only its users import it.`;
  if (toRoom === 'core' || toRoom === fromRoom || fromRoom === 'cli') return undefined;
  if (fromRoom === 'core') return `core imports nothing outside core, so not '${to}'.`;

  const allowed = fromRoom.startsWith('providers/') ? PROVIDER_IMPORTS : (ROOM_IMPORTS[fromRoom] ?? []);
  if (allowed.includes(toRoom)) return undefined;
  if (!allowed.includes(`types of ${toRoom}`)) return `${fromRoom} may not import ${toRoom}.`;
  return typeOnly ? undefined : `${fromRoom} may import only types of ${toRoom}: use 'import type'.`;
}

/**
 * @param {string} from
 * @param {string} specifier
 */
function checkOutside(from, specifier) {
  if (specifier.startsWith('node:')) {
    return NODE_ROOMS.includes(roomOf(from)) || NODE_DOORS.includes(from) ? undefined : `${roomOf(from)} runs anywhere, so it may not import '${specifier}'.`;
  }
  if (builtinModules.includes(specifier)) return `Write 'node:${specifier}'.`;
  const library = OUTSIDE_LIBRARIES[from];
  if (library !== undefined && (specifier === library || specifier.startsWith(`${library}/`))) return undefined;
  return `'${from}' may not import '${specifier}': a file that needs an outside library is a door of its own.`;
}

/**
 * @param {string} from
 * @param {string} to
 */
function checkCoreOrder(from, to) {
  if (from === 'index.ts') return undefined;
  if (to === 'index.ts') return 'core does not import its own door.';
  const [fromIndex, toIndex] = [from, to].map((file) => CORE_ORDER.indexOf(path.posix.basename(file, '.ts')));
  if (toIndex === undefined || fromIndex === undefined || toIndex < fromIndex) return undefined;
  return `'${from}' stands before '${to}' in the order of core, so it may not import it.`;
}

/** @type {Map<string, { mtimeMs: number, imports: readonly string[] }>} */
const importsByFile = new Map();

/**
 * The files that a file imports by relative paths, type imports included.
 *
 * @param {string} file
 * @returns {readonly string[]}
 */
function importsOf(file) {
  if (!existsSync(file)) return [];
  const { mtimeMs } = statSync(file);
  const known = importsByFile.get(file);
  if (known?.mtimeMs === mtimeMs) return known.imports;
  const imports = ts
    .preProcessFile(readFileSync(file, 'utf8'), true, true)
    .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => path.resolve(path.dirname(file), fileName));
  importsByFile.set(file, { mtimeMs, imports });
  return imports;
}

/**
 * The shortest way of imports from one file to another.
 *
 * @param {string} start
 * @param {string} goal
 * @returns {readonly string[] | undefined} The files on the way, both ends included.
 */
function importPath(start, goal) {
  /** @type {Map<string, string | undefined>} */
  const cameFrom = new Map([[start, undefined]]);
  for (const file of cameFrom.keys()) {
    if (file === goal) {
      const way = [];
      for (let at = /** @type {string | undefined} */ (file); at !== undefined; at = cameFrom.get(at)) way.unshift(at);
      return way;
    }
    for (const next of importsOf(file)) if (!cameFrom.has(next)) cameFrom.set(next, file);
  }
  return undefined;
}

/**
 * The rule. Its option is the absolute path of `src`.
 *
 * @type {Rule.RuleModule}
 */
const boundaries = {
  meta: { type: 'problem', schema: [{ type: 'string' }] },
  create(context) {
    const root = /** @type {string} */ (context.options[0]);
    const from = path.relative(root, context.filename).replaceAll(path.sep, '/');
    if (from.startsWith('..')) return {};

    /** @param {any} node */
    const check = (node) => {
      const specifier = node.source?.value ?? node.argument?.literal?.value ?? node.moduleReference?.expression?.value;
      if (typeof specifier !== 'string') return;
      const typeOnly = node.type === 'TSImportType' || node.importKind === 'type' || node.exportKind === 'type';
      const message = checkImport(from, specifier, typeOnly) ?? cycleThrough(specifier);
      if (message !== undefined) context.report({ node, message });
    };

    /** @param {string} specifier */
    const cycleThrough = (specifier) => {
      if (!specifier.startsWith('.')) return undefined;
      const way = importPath(path.resolve(path.dirname(context.filename), specifier), context.filename);
      return way && `Import cycle: ${[from, ...way.map((file) => path.relative(root, file))].join(' → ')}.`;
    };

    return {
      Program(node) {
        const inCore = from.startsWith('core/');
        if (inCore && !CORE_ORDER.includes(from.slice('core/'.length, -'.ts'.length))) {
          context.report({ node, message: `'${from}' has no place in CORE_ORDER of scripts/eslint-boundaries.js.` });
        }
      },
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check,
      TSImportType: check,
      TSImportEqualsDeclaration: check,
    };
  },
};

export default { meta: { name: 'turnloop' }, rules: { boundaries } };
