//! `#[derive(Tool)]`: a tool from a struct, for `centurion-embed`, which documents it.
//!
//! The derive writes a hidden twin of the struct with the same fields, doc comments and attributes, which reads the input
//! and has the schema; so the program needs neither `serde` nor `schemars` for its tools.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Generics, Ident, LitStr, Result, Type,
    parse_macro_input,
};

/// Makes a struct a tool; see the trait of the same name.
#[proc_macro_derive(Tool, attributes(tool, serde, schemars))]
pub fn derive_tool(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// The contents of `#[tool(…)]`.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    is_read_only: bool,
    state: Option<Type>,
}

impl Options {
    fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("tool")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") {
                    let name: LitStr = meta.value()?.parse()?;
                    options.name = Some(checked(name)?);
                } else if meta.path.is_ident("read_only") {
                    options.is_read_only = true;
                } else if meta.path.is_ident("state") {
                    options.state = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error("a tool has `name`, `read_only` and `state`"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

/// The name, if providers accept it as that of a tool.
fn checked(name: LitStr) -> Result<LitStr> {
    let text = name.value();
    let is_form = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if text.is_empty() || text.len() > 64 || !text.chars().all(is_form) {
        return Err(Error::new(name.span(), "a name has up to 64 letters, digits, `_` and `-`"));
    }
    Ok(name)
}

fn expand(input: &DeriveInput) -> Result<Tokens> {
    let options = Options::read(&input.attrs)?;
    let fields = named_fields(input)?;
    no_generics(&input.generics)?;
    if !input.attrs.iter().any(|attribute| attribute.path().is_ident("doc")) {
        let reason = "a tool has a doc comment: it tells the model what the tool is for";
        return Err(Error::new_spanned(&input.ident, reason));
    }
    let twin = format_ident!("{}Input", input.ident);
    let reading = reading(input, &fields, &twin);
    let implementation = implementation(&input.ident, &options);
    Ok(quote! {
        const _: () = {
            #reading
            #implementation
        };
    })
}

fn named_fields(input: &DeriveInput) -> Result<Vec<&Field>> {
    let reason = "a tool is a struct with named fields, which are its input";
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter().collect()),
            Fields::Unit => Ok(Vec::new()),
            Fields::Unnamed(_) => Err(Error::new_spanned(&input.ident, reason)),
        },
        Data::Enum(_) | Data::Union(_) => Err(Error::new_spanned(&input.ident, reason)),
    }
}

fn no_generics(generics: &Generics) -> Result<()> {
    if generics.params.is_empty() {
        Ok(())
    } else {
        Err(Error::new_spanned(generics, "a tool has no parameters: its name means one schema"))
    }
}

/// The attributes that the twin has, too.
fn kept(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    let names = ["doc", "serde", "schemars"];
    attributes.iter().filter(move |it| names.iter().any(|name| it.path().is_ident(name)))
}

/// The twin, and what the struct has from it: reading an input, and the schema.
fn reading(input: &DeriveInput, fields: &[&Field], twin: &Ident) -> Tokens {
    let name = &input.ident;
    let attributes = kept(&input.attrs);
    let declared = fields.iter().map(|field| {
        let (name, kind, attributes) = (&field.ident, &field.ty, kept(&field.attrs));
        quote!(#(#attributes)* #name: #kind)
    });
    // A tool without input has nothing to move.
    let twins = if fields.is_empty() { quote!(_) } else { quote!(input) };
    let moved = fields.iter().map(|field| {
        let name = &field.ident;
        quote!(#name: input.#name)
    });
    let serde_path = "::centurion_embed::derive_support::serde";
    let schemars_path = "::centurion_embed::derive_support::schemars";
    quote! {
        use ::centurion_embed::derive_support::{schemars, serde};

        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[serde(crate = #serde_path, deny_unknown_fields)]
        #[schemars(crate = #schemars_path)]
        #(#attributes)*
        struct #twin {
            #(#declared,)*
        }

        impl<'de> serde::Deserialize<'de> for #name {
            fn deserialize<D: serde::Deserializer<'de>>(
                reader: D,
            ) -> ::std::result::Result<Self, D::Error> {
                <#twin as serde::Deserialize>::deserialize(reader).map(|#twins| Self { #(#moved,)* })
            }
        }

        impl schemars::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(::std::stringify!(#name))
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <#twin as schemars::JsonSchema>::json_schema(generator)
            }
        }
    }
}

/// The tool itself: a call is the struct's own `run`.
fn implementation(name: &Ident, options: &Options) -> Tokens {
    let tool = options
        .name
        .as_ref()
        .map_or_else(|| LitStr::new(&name.to_string(), name.span()), Clone::clone);
    let is_read_only = options.is_read_only;
    let (state, run) = match &options.state {
        Some(state) => (quote!(#state), quote!(#name::run(self, state))),
        None => (quote!(()), quote!(#name::run(self))),
    };
    let unused = options.state.is_none().then(|| quote!(let _ = state;));
    quote! {
        impl ::centurion_embed::Tool for #name {
            type State = #state;

            const NAME: &'static str = #tool;
            const READ_ONLY: bool = #is_read_only;

            async fn call(
                self,
                state: &Self::State,
            ) -> ::std::result::Result<
                ::centurion_embed::ToolOutput,
                ::centurion_embed::ToolError,
            > {
                #unused
                ::std::result::Result::Ok(::std::convert::Into::into(#run.await?))
            }
        }
    }
}
