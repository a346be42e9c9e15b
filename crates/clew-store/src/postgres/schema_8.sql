-- Facts are matched in memory. The index goes with its column.
ALTER TABLE clew.facts DROP COLUMN words;
