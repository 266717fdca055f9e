-- what Django's models do not know: indexes inside words and rules, and a length that is a check, not a type
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX request_words ON approvals_approvalrequest USING gin (upper(words) gin_trgm_ops);
CREATE INDEX request_rules ON approvals_approvalrequest USING gin (rules jsonb_path_ops);
ALTER TABLE approvals_remark ADD CONSTRAINT remark_not_too_long CHECK (char_length(text) <= 4000);
