/** The adapter of this folder keeps every rule of the contract: the conformance kit says so. */
import { it } from 'vitest';
import { llmConformance } from 'turnloop/testing/conformance';
import { quillOnScene } from './quill-scenes.ts';

for (const { name, run } of llmConformance(quillOnScene)) it(name, run);
