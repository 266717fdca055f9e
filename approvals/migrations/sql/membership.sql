-- sending and voting read the voter's user row FOR SHARE; a change of membership must wait for them and they for it
CREATE FUNCTION approvals_membership_lock() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF TG_TABLE_NAME = 'auth_group_permissions' THEN
    PERFORM 1 FROM auth_user u JOIN auth_user_groups g ON g.user_id = u.id
      WHERE g.group_id = COALESCE(NEW.group_id, OLD.group_id) ORDER BY u.id FOR UPDATE OF u;
  ELSE
    PERFORM 1 FROM auth_user WHERE id = COALESCE(NEW.user_id, OLD.user_id) FOR UPDATE;
  END IF;
  RETURN COALESCE(NEW, OLD);
END $fn$;
CREATE TRIGGER auth_user_groups_lock BEFORE INSERT OR UPDATE OR DELETE ON auth_user_groups
  FOR EACH ROW EXECUTE FUNCTION approvals_membership_lock();
CREATE TRIGGER auth_user_user_permissions_lock BEFORE INSERT OR UPDATE OR DELETE ON auth_user_user_permissions
  FOR EACH ROW EXECUTE FUNCTION approvals_membership_lock();
CREATE TRIGGER auth_group_permissions_lock BEFORE INSERT OR UPDATE OR DELETE ON auth_group_permissions
  FOR EACH ROW EXECUTE FUNCTION approvals_membership_lock();
