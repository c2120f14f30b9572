use super::*;
pub fn render(template: &ChatTemplate, input: &RenderInput<'_>) -> Result<Rendered> {
    let text = template.render_text(input, input.messages, input.tools)?;
    Ok(Rendered { text, content_spans: Vec::new() })
}
