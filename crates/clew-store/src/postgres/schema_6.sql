-- Turns whose answer is not wholly posted yet: few rows at any time, which go to clew.messages once
-- they are confirmed. In a table of their own, since each of them dies soon, and dead rows of a
-- long table are dear.
CREATE TABLE clew.early_messages (LIKE clew.messages INCLUDING IDENTITY, PRIMARY KEY (id))
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50);
CREATE INDEX idx_early_messages_turn ON clew.early_messages (scope, turn_id);
ALTER TABLE clew.early_messages
    ALTER COLUMN content SET STATISTICS 0,
    ALTER COLUMN tool_calls SET STATISTICS 0,
    ALTER COLUMN tool_call_id SET STATISTICS 0,
    ALTER COLUMN author_name SET STATISTICS 0;

ALTER TABLE clew.early_messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE clew.early_messages FORCE ROW LEVEL SECURITY;
CREATE POLICY one_conversation ON clew.early_messages
    USING (scope = current_setting('clew.scope', true)
        OR current_setting('clew.all', true) = 'on')
    WITH CHECK (scope = current_setting('clew.scope', true)
        OR current_setting('clew.all', true) = 'on');
