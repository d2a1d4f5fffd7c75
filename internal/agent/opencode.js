// Tells the hub what happens in this session. It never makes opencode wait and
// never fails it: a message that cannot be handed over is dropped.
import { spawn } from "node:child_process"

const bin = BIN
const asked = EVENTS
const children = new Set() // sessions of sub-agents
let busy = ""

const tell = (name, properties) => {
  try {
    const hook = spawn(bin, ["hook", "opencode", name], { stdio: ["pipe", "ignore", "ignore"], detached: true, windowsHide: true })
    hook.on("error", () => {})
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify({ type: name, properties }))
    hook.unref()
  } catch {}
}

const short = (text) => String(text ?? "").slice(0, 4000)

// What the hub needs of an event, or nothing.
const reduce = ({ type, properties: p }) => {
  if (!asked.includes(type) || children.has(p.sessionID)) return
  if (type !== "session.status") busy = ""
  switch (type) {
    case "session.created":
      if (!p.info?.parentID) return { sessionID: p.sessionID }
      children.add(p.sessionID)
      return
    case "session.status":
      if (p.status?.type !== "busy" || busy === p.sessionID) return
      busy = p.sessionID
      return { sessionID: p.sessionID, status: { type: "busy" } }
    case "session.error":
      return { sessionID: p.sessionID, error: { name: short(p.error?.name),
        data: { message: short(p.error?.data?.message), statusCode: p.error?.data?.statusCode } } }
    case "permission.asked":
      return { sessionID: p.sessionID, permission: short(p.permission) }
    default:
      return { sessionID: p.sessionID }
  }
}

export const Wavehub = async () => {
  tell("load", {})
  return {
    event: async ({ event }) => {
      const properties = reduce(event)
      if (properties) tell(event.type, properties)
    },
  }
}
