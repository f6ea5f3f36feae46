// Typed rules for everything, boundary rules for src (scripts/eslint-boundaries.js), purity rules for the loop.
import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';
import boundaries from './scripts/eslint-boundaries.js';
import { ROOT } from './scripts/doors.js';

const IMPURE = [
  ['Date', 'now'],
  ['Math', 'random'],
  ['crypto', 'randomUUID'],
  ['crypto', 'getRandomValues'],
  ['performance', 'now'],
];

export default defineConfig(
  globalIgnores(['dist/', 'coverage/', 'docs/', 'test/fixtures/', 'test/mutations/patches/', 'examples/coding-agent/demo/workspace/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts', '**/*.js'],
    extends: [js.configs.recommended, tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: ROOT } },
    rules: {
      eqeqeq: 'error',
      // The compiler knows better.
      'no-undef': 'off',
      // Matching control characters is what cleaning text is about.
      'no-control-regex': 'off',
      'max-params': ['error', 3],
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportDefaultDeclaration', message: 'Use a named export.' },
      ],
      // It takes a flag that a callback sets, and what JSON.stringify returns, for constants.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // `obj['key']` is what noPropertyAccessFromIndexSignature asks for.
      '@typescript-eslint/dot-notation': ['error', { allowIndexSignaturePropertyAccess: true }],
      // A hook may return nothing or a decision, and says so as `void | Decision`.
      '@typescript-eslint/no-invalid-void-type': 'off',
      // Overloads tell lanes apart that a union would blur.
      '@typescript-eslint/unified-signatures': 'off',
      // What is thrown may be anybody's: `signal.reason`, what a tool threw.
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingAny: true, allowThrowingUnknown: true }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingAny: true, allowThrowingUnknown: true }],
      // An async function without `await` turns a throw into a rejection, which contracts rely on.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['src/**/*.ts'],
    plugins: { turnloop: boundaries },
    rules: {
      'turnloop/boundaries': ['error', `${ROOT}/src`],
      'no-console': 'error',
    },
  },
  {
    files: ['src/{core,policies,context,agent}/**/*.ts'],
    ignores: ['src/core/runtime.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        ...IMPURE.map(([object, property]) => ({
          object,
          property,
          message: 'Time, ids and randomness come from `runtime`.',
        })),
      ],
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate'].map((name) => ({
          name,
          message: 'Waiting goes through `runtime.sleep`.',
        })),
      ],
    },
  },
  {
    files: ['test/**/*.ts', 'examples/**/*.ts', 'bench/**/*.ts', 'scripts/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // Tests throw odd values and reject with them on purpose.
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      'max-params': 'off',
    },
  },
  {
    files: ['*.config.ts', '*.config.js', 'scripts/**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: { 'no-restricted-syntax': 'off' },
  },
);
