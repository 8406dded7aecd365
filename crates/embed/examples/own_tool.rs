//! Tools of the program: one with a state, one that only reads.
#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::unused_async, reason = "a tool may wait, and these need not")]

use std::collections::BTreeMap;
use std::sync::Arc;

use centurion_embed::{Error, Model, Session, Tool, ToolError};
use parking_lot::Mutex;

type Stock = Arc<Mutex<BTreeMap<String, u32>>>;

/// Adds pieces of an article to the stock.
#[derive(Tool)]
#[tool(name = "AddToStock", state = Stock)]
struct AddToStock {
    /// The name of the article.
    article: String,
    /// How many pieces come in.
    pieces: u32,
}

impl AddToStock {
    async fn run(self, stock: &Stock) -> Result<String, ToolError> {
        let mut stock = stock.lock();
        let pieces = stock.entry(self.article.clone()).or_default();
        *pieces = pieces.checked_add(self.pieces).ok_or(ToolError::new("that is too many"))?;
        Ok(format!("There are {pieces} {} now.", self.article))
    }
}

/// Lists the articles in stock.
#[derive(Tool)]
#[tool(read_only, state = Stock)]
struct ListStock;

impl ListStock {
    async fn run(self, stock: &Stock) -> Result<String, ToolError> {
        let stock = stock.lock();
        let lines = stock.iter().map(|(article, pieces)| format!("{article}: {pieces}"));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }
}

const SCRIPT: &str = r"
default:
  - {tool: AddToStock, input: {article: pencils, pieces: 12}}
  - {tool: ListStock, input: {}}
  - 'In stock: ${re:(pencils: \d+)}'
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let stock = Stock::default();
    let mut session = Session::builder(Model::script(SCRIPT))
        .tool_with::<AddToStock>(Arc::clone(&stock))
        .tool_with::<ListStock>(stock)
        .allow("AddToStock")
        .allow("ListStock")
        .open()
        .await?;
    println!("{}", session.ask("Twelve pencils came in.").await?.into_text()?);
    session.close().await;
    Ok(())
}
