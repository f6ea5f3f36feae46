// API reference of every door; an exported name or member without a doc comment fails the build.
import { DOORS } from './scripts/doors.js';

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  entryPoints: DOORS.map((door) => door.source),
  tsconfig: 'tsconfig.build.json',
  out: 'docs/api',
  name: 'turnloop',
  readme: 'none',
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  hideGenerator: true,
  logLevel: 'Warn',
  disableGit: true,
  disableSources: true,
  treatWarningsAsErrors: true,
  treatValidationWarningsAsErrors: true,
  validation: { notExported: true, invalidLink: true, rewrittenLink: true, notDocumented: true, unusedMergeModuleWith: true },
  requiredToBeDocumented: [
    'Module',
    'Enum',
    'EnumMember',
    'Variable',
    'Function',
    'Class',
    'Interface',
    'TypeAlias',
    'Property',
    'Method',
    'Accessor',
    'CallSignature',
  ],
  packagesRequiringDocumentation: ['turnloop'],
};
