// A tool for Vercel's AI SDK that works in a sandbox: a model's commands stay there.
//
//     npm install ai @ai-sdk/openai ward-sandbox
//
//     import { openai } from '@ai-sdk/openai'
//     console.log(await ask(openai('gpt-4.1'), 'What is 2 ** 100?'))    // WARD_HOST, WARD_TOKEN
import { generateText, jsonSchema, stepCountIs, tool, type LanguageModel } from 'ai'
import { create, WardError, type Sandbox } from 'ward-sandbox'

const OUTPUT_MOST = 20000

/** A tool of one sandbox. What goes wrong is said to the model, with what to do about it. */
export const makeTool = (box: Sandbox) => tool({
  description: 'Run a shell command in a Linux sandbox; the files of earlier commands are there.',
  inputSchema: jsonSchema<{ command: string }>({ type: 'object',
    properties: { command: { type: 'string' } }, required: ['command'],
    additionalProperties: false }),
  execute: async ({ command }) => {
    try {
      const done = await box.run(command, { timeout: 60 })
      return `exit status ${done.code}\n${done.stdout}${done.stderr}`.slice(0, OUTPUT_MOST)
    } catch (e) {
      if (e instanceof WardError) return `error: ${e.message}`
      throw e
    }
  },
})

/** The model's answer; each of its calls runs in a sandbox that ends with the answer. */
export async function ask(model: LanguageModel, prompt: string): Promise<string> {
  const box = await create({ timeout: 600 })
  try {
    const { text } = await generateText({ model, prompt, stopWhen: stepCountIs(20),
      tools: { run_command: makeTool(box) } })
    return text
  } finally {
    await box.kill()
  }
}
