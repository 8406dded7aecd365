//! Tests of the library as a program sees it, each with a script in the place of a model.

mod builder;
mod examples;
mod guards;
mod hooks;
mod tools;
mod turns;
