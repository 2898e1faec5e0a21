-- States too large for one value: lists of numbers in fields of their own, at most 64 entries each.
--
-- A limit's field is FIELD, its chunks are FIELD:0, FIELD:1 and so on. A chunk is read when it is
-- first asked for and written, at the end of a call that writes, if it was changed: a decision
-- touches one or two of them, however long the list is.
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local CHUNK = 64

local chunks = {}

-- `fresh` is a list that does not exist yet: what fields of its names hold belongs to another.
function chunks.of(key, field, fresh)
  return {key = key, field = field, fresh = fresh, loaded = {}, changed = {}}
end

-- The numbers of a chunk; an absent one is empty.
function chunks.get(list, number)
  local chunk = list.loaded[number]
  if not chunk then
    local name = list.field .. ':' .. text_of(number)
    chunk = numbers_in(not list.fresh and redis.call('HGET', list.key, name) or '')
    list.loaded[number] = chunk
  end
  return chunk
end

function chunks.change(list, number)
  list.changed[number] = true
  return chunks.get(list, number)
end

-- All chunks from `first` to `last` are gone.
function chunks.clear(list, first, last)
  for number = first, last do
    list.loaded[number] = {}
    list.changed[number] = true
  end
end

-- What has to be written: fields and values, and fields to delete.
function chunks.put(list, values, gone)
  for number in pairs(list.changed) do
    local field = list.field .. ':' .. text_of(number)
    local chunk = list.loaded[number]
    if #chunk == 0 then
      gone[#gone + 1] = field
    else
      local words = {}
      for i = 1, #chunk do words[i] = text_of(chunk[i]) end
      values[#values + 1] = field
      values[#values + 1] = table.concat(words, ' ')
    end
  end
end
