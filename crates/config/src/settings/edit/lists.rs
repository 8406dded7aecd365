//! Taking items out of the lists of a settings file, and putting others in their place.

use serde_json::json;

use super::{Change, EditError, Json, RuleList, SettingsFile, change, permissions};

/// Takes rules out of one of the lists of a file.
pub fn remove_rules(
    file: &SettingsFile,
    list: RuleList,
    rules: &[String],
) -> Result<Change, EditError> {
    edit_list(file, list.name(), |items| without(items, rules))
}

/// Puts these rules in the place of all that one of the lists of a file holds.
pub fn replace_rules(
    file: &SettingsFile,
    list: RuleList,
    rules: &[String],
) -> Result<Change, EditError> {
    let rules: Vec<String> = rules.iter().map(|rule| rule.trim().to_owned()).collect();
    if rules.iter().any(String::is_empty) {
        return Err(EditError::Empty);
    }
    edit_list(file, list.name(), |_| rules.clone())
}

/// Takes directories out of those that an agent may work in.
pub fn remove_directories(
    file: &SettingsFile,
    directories: &[String],
) -> Result<Change, EditError> {
    edit_list(file, "additionalDirectories", |items| without(items, directories))
}

fn without(items: Vec<String>, gone: &[String]) -> Vec<String> {
    items.into_iter().filter(|item| !gone.iter().any(|it| it.trim() == item.trim())).collect()
}

/// Makes another list of one. A file in which nothing changes is not written, nor made.
fn edit_list(
    file: &SettingsFile,
    list: &'static str,
    edit: impl Fn(Vec<String>) -> Vec<String>,
) -> Result<Change, EditError> {
    if !file.path().exists() && edit(Vec::new()).is_empty() {
        return Ok(Change::AlreadyThere);
    }
    change(file, |draft| {
        let permissions = permissions(draft, file)?;
        let node = permissions.and_then(|node| node.get(list));
        let mut items = Vec::new();
        match node.map(|node| (&node.json, node.line)) {
            None => {}
            Some((Json::List(nodes), line)) => {
                for node in nodes {
                    let Json::Text(text) = &node.json else {
                        return Err(file.shape(line, list, "list of texts"));
                    };
                    items.push(text.clone());
                }
            }
            Some((_, line)) => return Err(file.shape(line, list, "list")),
        }
        let edited = edit(items.clone());
        if edited == items {
            return Ok(None);
        }
        Ok(Some(match (permissions, node) {
            (_, Some(node)) => draft.replaced(node, &json!(edited)),
            (Some(permissions), None) => draft.with_member(permissions, list, &json!(edited)),
            (None, None) => draft.with_member(&draft.root, "permissions", &json!({ list: edited })),
        }))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn texts(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn items_go_and_others_come_and_the_rest_of_the_file_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        let file = SettingsFile::of_user(path.clone());
        let text = || fs::read_to_string(&path).unwrap();
        assert_eq!(
            remove_rules(&file, RuleList::Deny, &texts(&["X"])).unwrap(),
            Change::AlreadyThere
        );
        assert!(!path.exists());
        fs::write(
            &path,
            "{\n\t\"model\" : \"m\",\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"A\",\n\t\t\t\"B\"\n\t\t],\n\t\t\"deny\": [ \"D\" ]\n\t}\n}",
        )
        .unwrap();
        assert_eq!(
            remove_rules(&file, RuleList::Allow, &texts(&[" A "])).unwrap(),
            Change::Written
        );
        assert_eq!(
            text(),
            "{\n\t\"model\" : \"m\",\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"B\"\n\t\t],\n\t\t\"deny\": [ \"D\" ]\n\t}\n}"
        );
        assert_eq!(
            remove_rules(&file, RuleList::Allow, &texts(&["A"])).unwrap(),
            Change::AlreadyThere
        );
        replace_rules(&file, RuleList::Allow, &texts(&["C", "E"])).unwrap();
        replace_rules(&file, RuleList::Ask, &texts(&["F"])).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text()).unwrap();
        let lists = json!({"allow": ["C", "E"], "deny": ["D"], "ask": ["F"]});
        assert_eq!(value, json!({"model": "m", "permissions": lists}));
        super::super::add_directory(&file, "/d").unwrap();
        assert_eq!(remove_directories(&file, &texts(&["/d"])).unwrap(), Change::Written);
        assert!(text().contains("\"additionalDirectories\": []"), "{}", text());
    }

    #[test]
    fn what_is_no_list_of_texts_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("settings.json");
        let file = SettingsFile::of_user(path.clone());
        for written in [r#"{"permissions": {"allow": 1}}"#, r#"{"permissions": {"allow": [1]}}"#] {
            fs::write(&path, written).unwrap();
            let error = replace_rules(&file, RuleList::Allow, &texts(&["A"])).unwrap_err();
            assert!(matches!(error, EditError::Shape { .. }), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), written);
        }
        let empty = replace_rules(&file, RuleList::Allow, &texts(&[" "]));
        assert!(matches!(empty, Err(EditError::Empty)));
    }
}
