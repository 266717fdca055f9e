-- Four eyes on policies. Version 1 is made when the product is set up, where there is none. Every other one is, word for
-- word, the last save of a draft whose publication somebody else asked for, published by a person who wrote none of it.
CREATE FUNCTION approvals_two_people() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.draft_id IS NULL THEN
    IF NEW.number = 1 AND NOT EXISTS (SELECT FROM approvals_policyversion v WHERE v.policy_id = NEW.policy_id) THEN
      RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a further version of a policy comes from a draft' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT EXISTS (
    SELECT FROM approvals_policydraft d
      JOIN approvals_draftrevision r ON r.draft_id = d.id AND r.number = d.revision
      JOIN approvals_policy p ON p.id = d.policy_id
      WHERE d.id = NEW.draft_id AND d.policy_id = NEW.policy_id AND d.state = 'asked' AND r.digest = NEW.digest
        AND r.document = NEW.rules AND d.based_on_id = p.active_id
  ) THEN
    RAISE EXCEPTION 'this is not what was asked to be published' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT EXISTS (SELECT FROM runs_principal WHERE id = NEW.published_by_id AND kind = 'person')
    OR EXISTS (SELECT FROM approvals_policydraft WHERE id = NEW.draft_id AND asked_by_id = NEW.published_by_id)
    OR EXISTS (SELECT FROM approvals_draftrevision WHERE draft_id = NEW.draft_id AND author_id = NEW.published_by_id)
  THEN
    RAISE EXCEPTION 'a second person publishes a policy' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER two_people BEFORE INSERT ON approvals_policyversion
  FOR EACH ROW EXECUTE FUNCTION approvals_two_people();

-- an older version comes back as a new one, so that it is published by a second person as well
CREATE FUNCTION approvals_policy_forward() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.active_id IS DISTINCT FROM OLD.active_id AND NOT EXISTS (
    SELECT FROM approvals_policyversion v LEFT JOIN approvals_policyversion before ON before.id = OLD.active_id
      WHERE v.id = NEW.active_id AND v.policy_id = NEW.id AND v.number > COALESCE(before.number, 0)
  ) THEN
    RAISE EXCEPTION 'only a newer version of the policy comes into force' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER policy_forward BEFORE UPDATE ON approvals_policy
  FOR EACH ROW EXECUTE FUNCTION approvals_policy_forward();
