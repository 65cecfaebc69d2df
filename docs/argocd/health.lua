-- Health of an UpgradeRun for Argo CD: Healthy, Progressing, Suspended (a person decides) or Degraded.
-- Argo CD gives the object as `obj`; of Lua's libraries it offers only what needs no library at all.
local function condition(name)
  for _, item in ipairs(obj.status.conditions or {}) do
    if item.type == name then
      return item
    end
  end
  return {}
end

local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation or status.conditions == nil then
  return {status = "Progressing", message = "the operator hasn't seen this version of the run yet"}
end

local conflict, stalled = condition("Conflict"), condition("Stalled")
if conflict.status == "True" then
  return {status = "Degraded", message = conflict.message}
end
if stalled.status == "True" then
  return {status = "Degraded", message = stalled.message}
end

local succeeded = condition("Succeeded")
if succeeded.status == "True" then
  return {status = "Healthy", message = succeeded.message}
end
if succeeded.status == "False" then
  return {status = "Degraded", message = succeeded.message}
end
if status.phase == "AwaitingApproval" or condition("Suspended").status == "True" then
  return {status = "Suspended", message = succeeded.message}
end
return {status = "Progressing", message = succeeded.message}
