/**
 * Approval edit: what a call comes to with the arguments that a person made of it.
 *
 * - Whoever looks at an edited call sees what the edited arguments would do and touch, never what the old ones would have.
 * - What the tool does not take, or cannot speak for, is no call: it must not run.
 */
import { messageOf } from '../core/errors.ts';
import type { HookCall } from '../core/hooks.ts';
import { cloneJson, type JsonValue } from '../core/json.ts';
import { checkGivenInput } from '../core/tool-input.ts';
import { resolveCall } from '../core/tool-plan.ts';

/** The call as it would run, or why it cannot. */
export type EditedCall =
  | {
      readonly ok: true;
      /** The call, to be looked at. */
      readonly call: HookCall;
      /** The arguments, which whoever looks at the call cannot change. */
      readonly input: JsonValue;
    }
  | {
      readonly ok: false;
      /** For the model. */
      readonly message: string;
    };

/** Reads edited arguments as the loop will. Never rejects. */
export async function editedCall(call: HookCall, given: JsonValue): Promise<EditedCall> {
  const { toolCallId, name, inputText, tool, siblings } = call;
  if (tool === undefined) return { ok: false, message: `The edited call was not run: there is no tool named ${JSON.stringify(name)}.` };
  try {
    const read = await checkGivenInput(tool, given);
    if (!read.ok) return { ok: false, message: read.message };
    const { description, accesses } = resolveCall(tool, read.parsed);
    const shown = { toolCallId, name, inputText, input: cloneJson(read.input), tool, accesses, siblings };
    return { ok: true, input: read.input, call: description === undefined ? shown : { ...shown, description } };
  } catch (error) {
    return { ok: false, message: `The edited call was not run: the tool could not say what it does: ${messageOf(error)}` };
  }
}
